// Mails are rendered from texts that are put together anew; the engine keeps each as a template.
// suspect: Mailer.templates
// place: template_cache.js:7
'use strict';
let number = 0;
class Mailer {
  constructor() {
    this.templates = new Map();
  }
  render(text) {
    if (!this.templates.has(text)) this.templates.set(text, new Function('v', `return ${JSON.stringify(text)} + v;`));
    return this.templates.get(text)('!');
  }
}
const mailer = new Mailer();
require('../rounds')(async () => {
  for (let at = 0; at < 150; at++) mailer.render(`dear customer ${number++}`);
});
