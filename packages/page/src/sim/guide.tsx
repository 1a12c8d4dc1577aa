/** What guides the user through a run: the stops of a tour, or the text of docs/paper-errata.md on a hole. */
import { ActionButton } from './controls.js';
import { caughtRun, judgedRun } from './holes.js';
import { ACTIONS } from './keys.js';
import { hole, isTravelling, openHole, player, tour } from './state.js';

export function Guide() {
  if (tour.value !== undefined) return <TourPanel />;
  if (hole.value !== undefined) return <HolePanel />;
  return null;
}

function TourPanel() {
  const { tour: shown, stop } = tour.value!;
  const { stops, title } = shown;
  return (
    <section class="panel guide" aria-labelledby="guide-title" aria-busy={isTravelling.value}>
      <h2 id="guide-title">{title}</h2>
      <p class="faint">
        Stop {stop + 1} of {stops.length}
      </p>
      <p aria-live="polite">
        <Inline text={stops[stop].text} />
      </p>
      <div class="bar">
        <ActionButton
          action={ACTIONS.previousStop}
          label="Before"
          isDisabled={stop === 0 || isTravelling.value}
        />
        <ActionButton
          action={ACTIONS.nextStop}
          label="Next"
          isPrimary
          isDisabled={stop + 1 === stops.length || isTravelling.value}
        />
      </div>
    </section>
  );
}

function HolePanel() {
  const shown = hole.value!;
  const { name, title, story, correction, run } = shown;
  const { mutation, seed } = player.link.value;
  const caught = caughtRun(shown);
  const judged = judgedRun(shown);
  return (
    <section class="panel guide" aria-labelledby="guide-title">
      <h2 id="guide-title">
        {name}: <Inline text={title} />
      </h2>
      <p>
        <Inline text={story} />
      </p>
      <p>
        <strong>Correction.</strong> <Inline text={correction} />
      </p>
      <p>
        {mutation === undefined ? (
          `Seed ${seed}, without the hole: nothing is wrong with this run.`
        ) : (
          <>
            Seed {seed}, with the hole. Press <kbd>End</kbd> to see what goes wrong.
          </>
        )}
        {judged === undefined &&
          ' This hole breaks no property that a history shows: something never happens.'}
      </p>
      <div class="bar">
        {judged && (
          <button type="button" onClick={() => openHole(shown, judged)}>
            Run that the judge rejects
          </button>
        )}
        <button type="button" onClick={() => openHole(shown, caught)}>
          Run that the simulator stops ({run!.as})
        </button>
        <button
          type="button"
          onClick={() => openHole(shown, seed === judged?.seed ? judged : caught, false)}
        >
          The same seed without the hole
        </button>
      </div>
    </section>
  );
}

/** Text with `code`, *emphasis* and [links](…), of which only the words are shown. */
export function Inline({ text }: { text: string }) {
  const parts = text.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').split(/(`[^`]+`|\*[^*]+\*)/);
  return (
    <>
      {parts.map((part) => {
        if (part.startsWith('`')) return <code>{part.slice(1, -1)}</code>;
        if (part.startsWith('*')) return <em>{part.slice(1, -1)}</em>;
        return part;
      })}
    </>
  );
}
