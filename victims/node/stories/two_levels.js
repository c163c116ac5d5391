// What users did, by tenant and user: each user's list grows a little.
// suspect: Activity.byTenant|byTenant
// place: two_levels.js:6
'use strict';
class Activity {
  constructor() {
    this.byTenant = {};
  }
  note(tenant, user, what) {
    const users = (this.byTenant[tenant] ??= {});
    (users[user] ??= []).push({ what, at: new Date() });
  }
}
const activity = new Activity();
require('../rounds')(async () => {
  for (let at = 0; at < 600; at++) activity.note(`tenant-${at % 12}`, `user-${at % 60}`, `click ${at}`);
});
