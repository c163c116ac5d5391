/** Page of `heapr view`. */
import { render } from 'preact';
import { guardAddress } from './address/use-address';
import { recordedAddress, useRecordedAnswers } from './api/client';
import { refusal, withSpans } from './filter/recorded-filter';
import { App } from './frame/app';
import { apply } from './frame/theme';
import './style/base.css';
import './style/table.css';
import './style/trace.css';
import './style/where.css';
import './style/story.css';
import './style/resident.css';
import './style/snapshot.css';
import './style/share.css';

apply();
const root = document.getElementById('app');
useRecordedAnswers()
  .then(() => {
    if (location.hash === '' && recordedAddress() !== '') location.replace(`#${recordedAddress()}`);
    guardAddress(refusal, withSpans);
    root?.replaceChildren();
    if (root) render(<App />, root);
  })
  .catch((error: unknown) => {
    if (root) root.textContent = `the answers in this page cannot be read: ${String(error)}`;
  });
