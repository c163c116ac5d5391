/** The page of `heapr view`. */
import { render } from 'preact';
import { useRecordedAnswers } from './api/client';
import { App } from './frame/app';
import { apply } from './frame/theme';
import './style/base.css';
import './style/table.css';
import './style/trace.css';
import './style/snapshot.css';

apply();
const root = document.getElementById('app');
useRecordedAnswers()
  .then(() => {
    root?.replaceChildren();
    if (root) render(<App />, root);
  })
  .catch((error: unknown) => {
    if (root) root.textContent = `the answers in this page cannot be read: ${String(error)}`;
  });
