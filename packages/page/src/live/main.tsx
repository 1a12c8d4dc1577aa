/** A running cluster, as `tram watch` shows it. */
import { render } from 'preact';
import '../shared/theme.css';
import { ThemeButton } from '../shared/theme.js';

render(
  <main>
    <h1>TRAM: live</h1>
    <ThemeButton />
  </main>,
  document.getElementById('page')!,
);
