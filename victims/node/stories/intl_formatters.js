// A formatter for each pair of language and currency that a client sends, kept by the pair's name.
// suspect: formatters
// place: intl_formatters.js:7
'use strict';
const formatters = {};
let number = 0;
function format(amount, locale, digits) {
  const key = `${locale}:${digits}`;
  formatters[key] ??= new Intl.NumberFormat(locale);
  return formatters[key].format(amount);
}
require('../rounds')(async () => {
  for (let at = 0; at < 100; at++) format(12.5, 'de-DE', number++);
});
