// Each reload of the translations adds to the lists instead of replacing them.
// suspect: Catalogue.messages
// place: translations.js:6
'use strict';
class Catalogue {
  constructor() {
    this.messages = new Map();
  }
  load(language) {
    const list = this.messages.get(language) ?? [];
    for (let at = 0; at < 50; at++) list.push({ key: `key.${at}`, text: `${language} text ${at}` });
    this.messages.set(language, list);
  }
}
const catalogue = new Catalogue();
require('../rounds')(async () => {
  for (const language of ['de', 'en', 'fr', 'it', 'es', 'pl', 'sv', 'nl']) catalogue.load(language);
});
