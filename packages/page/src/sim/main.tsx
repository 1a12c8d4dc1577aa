/** The simulator in the browser. */
import { render } from 'preact';
import '../shared/theme.css';
import { ThemeButton } from '../shared/theme.js';

render(
  <main>
    <h1>TRAM: the simulator</h1>
    <ThemeButton />
  </main>,
  document.getElementById('page')!,
);
