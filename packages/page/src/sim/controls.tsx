/** The buttons: time, what to send, and what to break. */
import { ACTIONS, type Action, keyName } from './keys.js';
import {
  client,
  destinations,
  isPlaying,
  other,
  otherEnd,
  PACES,
  player,
  selected,
  selectedReplica,
  stepsPerSecond,
} from './state.js';
import { timeText } from './words.js';

export function ActionButton(props: {
  action: Action;
  label: string;
  isPrimary?: boolean;
  isDisabled?: boolean;
}) {
  const { action, label, isPrimary = false, isDisabled = false } = props;
  return (
    <button
      type="button"
      class={isPrimary ? 'primary' : ''}
      title={`${action.title} (${keyName(action)})`}
      aria-keyshortcuts={action.key === ' ' ? 'Space' : action.key}
      disabled={isDisabled}
      onClick={() => action.act()}
    >
      {label}{' '}
      <span class="key" aria-hidden="true">
        {keyName(action)}
      </span>
    </button>
  );
}

export function Transport() {
  const view = player.view.value;
  const busy = player.busy.value;
  const isOver = player.isOver.value;
  const isAtStart = view?.events === 0;
  return (
    <section class="bar" aria-label="Time">
      <ActionButton action={ACTIONS.start} label="Start" isDisabled={isAtStart} />
      <ActionButton action={ACTIONS.back} label="Back" isDisabled={isAtStart} />
      <ActionButton action={ACTIONS.step} label="Step" isPrimary isDisabled={isOver} />
      <ActionButton
        action={ACTIONS.play}
        label={isPlaying.value ? 'Stop' : 'Play'}
        isDisabled={isOver}
      />
      <ActionButton action={ACTIONS.end} label="End" isDisabled={isOver} />
      <label class="pace">
        <span class="unseen">Steps per second</span>
        <select
          value={stepsPerSecond.value}
          onChange={({ currentTarget }) => {
            stepsPerSecond.value = Number(currentTarget.value);
          }}
        >
          {PACES.map((pace) => (
            <option key={pace} value={pace}>
              {pace} per second
            </option>
          ))}
        </select>
      </label>
      <output class="moment">
        {busy !== undefined
          ? `running… event ${busy.toLocaleString('en')}`
          : view && `event ${view.events.toLocaleString('en')} · ${timeText(view.timeUs)}`}
      </output>
    </section>
  );
}

export function SendBar() {
  const view = player.view.value;
  const groups = [...destinations.value].sort((a, b) => a - b);
  return (
    <section class="bar" aria-label="Multicast">
      <label>
        Client{' '}
        <select
          value={client.value}
          onChange={({ currentTarget }) => {
            client.value = Number(currentTarget.value);
          }}
        >
          {view?.clients.map(({ name }, i) => (
            <option key={name} value={i}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <span>
        to{' '}
        {groups.length === 0
          ? 'no group'
          : `group${groups.length > 1 ? 's' : ''} ${groups.join(', ')}`}
        <span class="faint hint"> (click a group’s title, or press its number)</span>
      </span>
      <ActionButton
        action={ACTIONS.send}
        label="Multicast"
        isPrimary
        isDisabled={player.isOver.value}
      />
      <ActionButton action={ACTIONS.undo} label="Undo" />
    </section>
  );
}

/** What can be done to the selected replica now. */
export function FaultBar() {
  const replica = selectedReplica.value;
  const view = player.view.value;
  if (replica === undefined || view === undefined || player.isOver.value) return null;
  const { state, leavesMemory, name } = replica;
  const { mayEnd } = view;
  return (
    <section class="bar" aria-label={`Faults of ${name}`}>
      <strong class="target">{name}</strong>
      {state === 'down' ? (
        <>
          {mayEnd && leavesMemory && <ActionButton action={ACTIONS.resume} label="Resume" />}
          {mayEnd && <ActionButton action={ACTIONS.restart} label="Restart empty" />}
        </>
      ) : (
        <>
          {mayEnd && <ActionButton action={ACTIONS.crash} label="Crash" />}
          {mayEnd && <ActionButton action={ACTIONS.kill} label="Kill" />}
          {state === 'paused' ? (
            <ActionButton action={ACTIONS.resume} label="Resume" />
          ) : (
            <>
              <ActionButton action={ACTIONS.pause} label="Pause" />
              <ActionButton action={ACTIONS.campaign} label="Campaign" />
              <ActionButton action={ACTIONS.rivals} label="Two candidates" />
            </>
          )}
        </>
      )}
    </section>
  );
}

export function LinkBar() {
  const view = player.view.value;
  if (view === undefined || !view.hasLinks || player.isOver.value) return null;
  const names = [...view.replicas, ...view.clients].map(({ name }) => name);
  const others = names.filter((name) => name !== selected.value);
  return (
    <section class="bar" aria-label="Links">
      <label>
        Link {selected.value} ↔{' '}
        <select
          value={otherEnd.value}
          onChange={({ currentTarget }) => {
            other.value = currentTarget.value;
          }}
        >
          {others.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <ActionButton action={ACTIONS.cut} label="Cut" />
      <ActionButton action={ACTIONS.slow} label="Slow" />
      <ActionButton action={ACTIONS.mend} label="Mend" />
      <ActionButton action={ACTIONS.tear} label="Tear writes" />
      {view.links.length > 0 && (
        <span class="faint">
          {view.links.map(({ from, to, state }) => `${from}→${to} ${state}`).join(', ')}
        </span>
      )}
    </section>
  );
}
