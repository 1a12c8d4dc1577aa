/** The groups as a table in the order of the tree. A group opens to show its replicas. */
import type { Shown, ShownGroup, ShownReplica } from 'tram-multicast/internal/page/wire.js';
import { confirm } from './confirm.js';
import { hasControl } from './link.js';
import { isTroubled, Mark, standingOf, wordFor } from './standing.js';
import { isBroad, selected, Tree } from './tree.js';
import { count, percent } from './words.js';

/** Deeper groups are not indented further. */
const DEPTH_MAX = 8;

/** The columns, and what the group has there. */
const COLUMNS = [
  { title: 'Ballot', wide: true },
  { title: 'Messages/s', wide: false },
  { title: 'Relayed/s', wide: true },
  { title: 'Decided', wide: true },
  { title: 'Settled', wide: true },
  { title: 'Recoverable', wide: true },
  { title: 'Behind', wide: false },
  { title: 'Log', wide: true },
  { title: 'Feeds', wide: true },
] as const;

export function Groups({ shown }: { readonly shown: Shown }) {
  const { groups } = shown;
  const has: Readonly<Record<string, boolean>> = {
    Settled: groups[0].settled !== null,
    Recoverable: groups[0].recoverable !== null,
    Feeds: groups.length > 1,
    'Relayed/s': groups.length > 1,
  };
  const columns = COLUMNS.filter(({ title }) => has[title] ?? true);
  const toggle = (group: number): void => {
    selected.value = selected.value === group ? undefined : group;
  };
  return (
    <section class="panel groups" aria-labelledby="groups-title">
      <h2 id="groups-title">Groups</h2>
      {isBroad(groups) ? null : <Tree groups={groups} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it may scroll, and so the keyboard must reach it */}
      <section class="scrolls" aria-label="Table of groups" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col">Replicas</th>
              {columns.map(({ title, wide }) => (
                <th key={title} scope="col" class={wide ? 'number wide' : 'number'}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          {inTreeOrder(groups).map(({ group, depth }) => (
            <tbody key={group.group} id={`group-${group.group}`}>
              <GroupRow
                group={group}
                depth={depth}
                titles={columns.map(({ title }) => title)}
                isOpen={selected.value === group.group}
                toggle={toggle}
              />
              {selected.value === group.group ? (
                <tr>
                  <td class="opened" colSpan={columns.length + 2}>
                    <Replicas group={group} shown={shown} />
                  </td>
                </tr>
              ) : null}
            </tbody>
          ))}
        </table>
      </section>
    </section>
  );
}

interface Placed {
  readonly group: ShownGroup;
  readonly depth: number;
}

function inTreeOrder(groups: readonly ShownGroup[]): Placed[] {
  const visit = (parent: number, depth: number): Placed[] =>
    groups.flatMap((group) =>
      group.parent === parent ? [{ group, depth }, ...visit(group.group, depth + 1)] : [],
    );
  return visit(-1, 0);
}

interface RowProps extends Placed {
  readonly titles: readonly string[];
  readonly isOpen: boolean;
  toggle(group: number): void;
}

function GroupRow({ group, depth, titles, isOpen, toggle }: RowProps) {
  const { group: id, replicas, leader } = group;
  return (
    <tr class={isTroubled(group) ? 'troubled' : undefined}>
      <th scope="row" style={{ '--depth': Math.min(depth, DEPTH_MAX) }}>
        <button
          type="button"
          class="disclosure"
          aria-expanded={isOpen}
          onClick={() => toggle(id)}
          onKeyDown={moveFocus}
        >
          g{id}
        </button>
      </th>
      <td class="replicas">
        {replicas.map((replica) => (
          <span key={replica.member} class={`chip ${standingOf(replica, leader)}`}>
            <Mark standing={standingOf(replica, leader)} />
            {replica.member}
            <span class="unseen"> {wordFor(replica, leader)}; </span>
          </span>
        ))}
      </td>
      {titles.map((title) => (
        <Cell key={title} title={title} group={group} />
      ))}
    </tr>
  );
}

/** Arrows go to the group above or below. */
function moveFocus(event: KeyboardEvent): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  const buttons = [...document.querySelectorAll<HTMLButtonElement>('button.disclosure')];
  buttons[buttons.indexOf(event.currentTarget as HTMLButtonElement) + step]?.focus();
}

function Cell({ title, group }: { readonly title: string; readonly group: ShownGroup }) {
  switch (title) {
    case 'Ballot':
      return <td class="number wide">{group.ballot ?? 'no leader'}</td>;
    case 'Messages/s':
      return <td class="number">{count(group.messagesPerSecond)}</td>;
    case 'Relayed/s':
      return <td class="number wide">{count(group.relayedPerSecond)}</td>;
    case 'Decided':
      return <td class="number wide">{count(group.decided)}</td>;
    case 'Settled':
      return <td class="number wide">{count(group.settled ?? 0)}</td>;
    case 'Recoverable':
      return <td class="number wide">{count(group.recoverable ?? 0)}</td>;
    case 'Behind':
      return <td class="number">{count(mostBehind(group))}</td>;
    case 'Log':
      return <Fill part={group.logFill} what={`log of g${group.group}`} high={0.9} />;
    default:
      // A leader drops what it has sent when it needs room, so only a feed that waits is a bad sign.
      return <Fill part={group.feedFill} what={`feeds of g${group.group}`} high={1} />;
  }
}

/** Of those that run. */
function mostBehind({ replicas }: ShownGroup): number {
  const up = replicas.filter(({ state }) => state === 'up');
  return Math.max(0, ...up.map(({ behind }) => behind));
}

interface FillProps {
  readonly part: number | null;
  readonly what: string;
  /** From here on it is a bad sign. */
  readonly high: number;
}

function Fill({ part, what, high }: FillProps) {
  if (part === null) return <td class="number wide">–</td>;
  return (
    <td class={`number wide fill ${part >= high ? 'bad' : ''}`}>
      <meter aria-label={what} min={0} max={1} value={part} />
      {part >= 1 ? 'full' : percent(part)}
    </td>
  );
}

// --- an open group -----------------------------------------------------------------------------

function Replicas({ group, shown }: { readonly group: ShownGroup; readonly shown: Shown }) {
  const hasJournal = group.recoverable !== null;
  return (
    <>
      <Indices group={group} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it may scroll, and so the keyboard must reach it */}
      <section class="scrolls" aria-label={`Table of the replicas of g${group.group}`} tabIndex={0}>
        <table aria-label={`Replicas of g${group.group}`}>
          <thead>
            <tr>
              <th scope="col">Replica</th>
              <th scope="col">State</th>
              <th scope="col">Host</th>
              <th scope="col" class="number">
                Delivered
              </th>
              <th scope="col" class="number">
                Behind
              </th>
              {hasJournal ? (
                <th scope="col" class="number">
                  Durable
                </th>
              ) : null}
              <th scope="col" class="number">
                Promised
              </th>
              <th scope="col" class="number">
                Led
              </th>
              {hasControl.value ? (
                <th scope="col">
                  <span class="unseen">Actions</span>
                </th>
              ) : null}
            </tr>
          </thead>
          <tbody>
            {group.replicas.map((replica) => (
              <ReplicaRow
                key={replica.member}
                replica={replica}
                group={group}
                host={shown.hosts[replica.host].title}
                hasJournal={hasJournal}
              />
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

/** What narrow screens do not show in the row of the group. */
function Indices({ group }: { readonly group: ShownGroup }) {
  const { ballot, relayedPerSecond, decided, settled, recoverable, logFill, feedFill } = group;
  const items: readonly (readonly [string, string | null])[] = [
    ['Ballot', ballot ?? 'none'],
    ['Relayed/s', count(relayedPerSecond)],
    ['Decided', count(decided)],
    ['Settled', settled === null ? null : count(settled)],
    ['Recoverable', recoverable === null ? null : count(recoverable)],
    ['Log', logFill === null ? null : percent(logFill)],
    ['Feeds', feedFill === null ? null : percent(feedFill)],
  ];
  return (
    <dl class="indices">
      {items.map(([title, value]) =>
        value === null ? null : (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

interface ReplicaProps {
  readonly replica: ShownReplica;
  readonly group: ShownGroup;
  readonly host: string;
  readonly hasJournal: boolean;
}

function ReplicaRow({ replica, group, host, hasJournal }: ReplicaProps) {
  const { name, member, state, delivered, behind, durable, promised, timesLed } = replica;
  const standing = standingOf(replica, group.leader);
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class={`standing-word ${standing}`}>
        <Mark standing={standing} /> {wordFor(replica, group.leader)}
      </td>
      <td>{host}</td>
      <td class="number">{count(delivered)}</td>
      <td class="number">{count(behind)}</td>
      {hasJournal ? <td class="number">{count(durable ?? 0)}</td> : null}
      <td class="number">{promised ?? 'none'}</td>
      <td class="number">{count(timesLed)}×</td>
      {hasControl.value ? (
        <td class="actions">
          <button
            type="button"
            disabled={member === group.leader || state !== 'up'}
            onClick={() =>
              confirm({
                request: { action: 'lead', group: group.group, member },
                title: `Let ${name} lead`,
                explanation: `${name} becomes the leader of g${group.group}. No message is lost; clients notice a short pause.`,
              })
            }
          >
            Lead<span class="unseen"> with {name}</span>
          </button>
        </td>
      ) : null}
    </tr>
  );
}
