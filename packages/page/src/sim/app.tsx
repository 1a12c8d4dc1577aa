/** The whole page of the simulator. */
import { ThemeButton } from '../shared/theme.js';
import { ActionButton, FaultBar, LinkBar, SendBar, Transport } from './controls.js';
import { Dialogs } from './dialogs.js';
import { Guide } from './guide.js';
import { Inspector } from './inspector.js';
import { ACTIONS } from './keys.js';
import { KINDS, Picture } from './picture.js';
import { announcement, player, showsTable } from './state.js';
import { StateTable } from './state-table.js';
import { Story } from './story.js';
import { VerdictPanel } from './verdict.js';

export function App() {
  const complaint = player.complaint.value;
  return (
    <>
      <header class="top">
        <div>
          <h1>TRAM simulator</h1>
          <Facts />
        </div>
        <nav class="bar" aria-label="Page">
          <ActionButton action={ACTIONS.tours} label="Tours" />
          <ActionButton action={ACTIONS.holes} label="Holes" />
          <ActionButton action={ACTIONS.setup} label="New run" />
          <ActionButton action={ACTIONS.link} label="Link" />
          <ActionButton action={ACTIONS.judge} label="Judge" />
          <ActionButton action={ACTIONS.table} label="Table" />
          <ActionButton action={ACTIONS.keys} label="Keys" />
          <ThemeButton />
        </nav>
      </header>
      <main>
        <div class="left">
          {showsTable.value ? (
            <StateTable />
          ) : (
            <>
              <Picture />
              <Legend />
            </>
          )}
          {complaint !== undefined && (
            <p class="complaint" role="alert">
              {complaint}
            </p>
          )}
          <div class="controls">
            <Transport />
            <SendBar />
            <div class="bars">
              <FaultBar />
              <LinkBar />
            </div>
          </div>
          {!showsTable.value && <StateTable />}
        </div>
        <aside class="right" aria-label="Details">
          <Guide />
          <VerdictPanel />
          <Inspector />
          <Story />
        </aside>
      </main>
      <p class="unseen" aria-live="polite">
        {announcement.value}
      </p>
      <Dialogs />
    </>
  );
}

function Facts() {
  const facts = player.view.value?.facts ?? [];
  return (
    <p class="faint run-facts">{facts.map(([name, value]) => `${name} ${value}`).join(' · ')}</p>
  );
}

function Legend() {
  return (
    <div class="legend faint">
      <span>
        Entries: <span class="cell undecided">undecided</span>{' '}
        <span class="cell decided">decided</span> <span class="cell delivered">delivered</span>
      </span>
      <span>
        Writes:{' '}
        {KINDS.map((kind) => (
          <span key={kind} class={`kind of-${kind}`}>
            {kind}{' '}
          </span>
        ))}
      </span>
    </div>
  );
}
