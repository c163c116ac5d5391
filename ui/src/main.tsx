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
useRecordedAnswers();
const root = document.getElementById('app');
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
