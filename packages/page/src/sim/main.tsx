/** The simulator in the browser. */
import { effect } from '@preact/signals';
import { render } from 'preact';
import '../shared/theme.css';
import './sim.css';
import { App } from './app.js';
import { handleKeys } from './keys.js';
import { address, openFragment } from './state.js';

render(<App />, document.getElementById('page')!);
handleKeys();
openFragment(location.hash.slice(1));

/** What this page has put into the address itself. */
let written = location.hash.slice(1);

addEventListener('hashchange', () => {
  const text = location.hash.slice(1);
  if (text === written) return;
  written = text;
  openFragment(text);
});

effect(() => {
  const text = address.value;
  if (text === '') return;
  written = text;
  history.replaceState(null, '', `#${text}`);
});
