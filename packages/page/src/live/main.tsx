/** A running cluster, as `tram watch` shows it. */
import { render } from 'preact';
import '../shared/theme.css';
import './live.css';
import { App } from './app.js';
import { keepLink } from './link.js';

render(<App />, document.getElementById('page')!);
void keepLink();
