/** The judge: its verdict on what has happened so far, and its witness, drawn on what the replicas have delivered. */
import { computed } from '@preact/signals';
import type { Verdict } from 'tram-multicast/internal/check/judge.js';
import type { PropertyVerdict, Violation } from 'tram-multicast/internal/check/properties.js';
import { askedAt, player } from './state.js';

/** A delivery that the witness names. */
export interface Mark {
  readonly replica: string;
  readonly id: string;
}

const verdict = computed((): Verdict | undefined => {
  const isAsked = askedAt.value === player.fragment.value && askedAt.value !== '';
  if (!isAsked && !player.isOver.value) return undefined;
  return player.view.value === undefined ? undefined : player.run?.judge();
});

const violated = computed((): Violated[] =>
  (verdict.value?.properties ?? []).filter((found): found is Violated => 'violation' in found),
);

type Violated = PropertyVerdict & { readonly violation: Violation; readonly witness: string };

/** What the witnesses of broken promises name. */
export const marks = computed((): readonly Mark[] =>
  violated.value
    .filter(({ outcome }) => outcome === 'violated')
    .flatMap(({ violation }) => marksOf(violation)),
);

function marksOf(violation: Violation): Mark[] {
  switch (violation.property) {
    case 'uniform-prefix-order':
      return [violation.one, violation.other].map(({ replica, message }) => ({
        replica,
        id: message,
      }));
    case 'uniform-acyclic-order':
    case 'real-time-order':
      return violation.cycle.flatMap((step) =>
        'replica' in step
          ? [step.before, step.after].map((id) => ({ replica: step.replica, id }))
          : [],
      );
    case 'uniform-integrity':
      return 'message' in violation ? [{ replica: violation.replica, id: violation.message }] : [];
    case 'uniform-agreement':
    case 'validity':
      return [{ replica: violation.missingAt, id: violation.message }];
    case 'fifo-order':
      return [violation.delivered, violation.skipped].map((id) => ({
        replica: violation.replica,
        id,
      }));
    default:
      return [];
  }
}

export function VerdictPanel() {
  const found = verdict.value;
  const failure = player.failure.value;
  if (found === undefined && failure === undefined) return null;
  return (
    <section class="panel verdict" aria-labelledby="verdict-title">
      <h2 id="verdict-title">The judge</h2>
      {failure && (
        <div class="failure">
          <p>
            <strong>The simulator stops the run: {failure.kind}.</strong>
          </p>
          <pre>{player.run!.inTexts(failure.message)}</pre>
        </div>
      )}
      {violated.value.map((each) => (
        <Witness key={each.property} found={each} />
      ))}
      {found && <Properties verdict={found} />}
    </section>
  );
}

function Properties({ verdict: { properties, counts } }: { verdict: Verdict }) {
  return (
    <table class="properties">
      <caption>
        {counts.messages} messages, {counts.deliveries} deliveries
      </caption>
      <tbody>
        {properties.map(({ property, outcome }) => (
          <tr key={property} class={outcome}>
            <th scope="row">{property.replaceAll('-', ' ')}</th>
            <td>{OUTCOMES[outcome]}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const OUTCOMES: Readonly<Record<PropertyVerdict['outcome'], string>> = {
  holds: '✓ holds',
  violated: '✕ violated',
  unknown: '? not known yet',
  'not-promised': '– not promised',
};

/** How many deliveries are drawn before and after those that the witness names. */
const AROUND = 2;

function Witness({ found: { property, outcome, witness, violation } }: { found: Violated }) {
  const run = player.run!;
  const named = marksOf(violation);
  const replicas = [...new Set(named.map(({ replica }) => replica))];
  return (
    <div class={`witness-box ${outcome}`}>
      <p>
        <strong>{property.replaceAll('-', ' ')}</strong>
        {outcome === 'not-promised' && ' is not promised in this run, and does not hold'}:{' '}
        {run.inTexts(witness)}.
      </p>
      {replicas.length > 0 && (
        <table class="witness-table">
          <caption class="unseen">What these replicas have delivered, around the witness</caption>
          <tbody>
            {replicas.map((replica) => (
              <tr key={replica}>
                <th scope="row">{replica}</th>
                <td>
                  <Deliveries replica={replica} named={named} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

function Deliveries({ replica, named }: { replica: string; named: readonly Mark[] }) {
  const run = player.run!;
  const ids = run.deliveries(replica);
  const wanted = named.filter((mark) => mark.replica === replica).map(({ id }) => id);
  const places = wanted.map((id) => ids.indexOf(id)).filter((place) => place >= 0);
  const first = Math.max(0, Math.min(ids.length, ...places) - AROUND);
  const end = Math.max(...places, first) + AROUND + 1;
  const missing = wanted.filter((id) => !ids.includes(id));
  return (
    <span class="cells">
      {first > 0 && <span class="before">{first} …</span>}
      {ids.slice(first, end).map((id) => (
        <span key={id} class={`cell delivered${wanted.includes(id) ? ' witness' : ''}`}>
          {run.labelOf(id)}
        </span>
      ))}
      {missing.map((id) => (
        <span key={id} class="cell missing witness">
          no {run.labelOf(id)}
        </span>
      ))}
    </span>
  );
}
