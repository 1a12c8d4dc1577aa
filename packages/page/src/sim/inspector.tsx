/** Everything about the selected replica: its promise, what its memory permits, its log, inboxes, feeds and row. */
import type { QueueView, ReplicaView } from '../run/view.js';
import { selectedReplica } from './state.js';
import { describeCell, roleText } from './words.js';

export function Inspector() {
  const replica = selectedReplica.value;
  if (replica === undefined) return null;
  const { name, log, inboxes, feeds, row } = replica;
  return (
    <section class="panel" aria-labelledby="inspector-title">
      <h2 id="inspector-title">Replica {name}</h2>
      <Facts replica={replica} />
      <h3>Log{log && <span class="faint"> of ballot {log.ballot}</span>}</h3>
      <LogTable replica={replica} />
      <Queues title="Inboxes" queues={inboxes} empty="Nothing waits in its inboxes." />
      {feeds.length > 0 && (
        <Queues title="Feeds from the parent" queues={feeds} empty="Nothing waits in its feeds." />
      )}
      {row.length > 0 && (
        <details>
          <summary>Its row, as others read it</summary>
          <table class="facts">
            <tbody>
              {row.map(([title, value]) => (
                <tr key={title}>
                  <th scope="row">{title}</th>
                  <td>{value}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
    </section>
  );
}

function Facts({ replica }: { replica: ReplicaView }) {
  const { incarnation, promised, permits, holds, next, deliveries } = replica;
  const facts = [
    ['Role', roleText(replica)],
    ['Promised', promised],
    ['Permits', permits],
    ['May write', holds.length > 0 ? `the logs of ${holds.join(', ')}` : 'no log'],
    ['Delivers next', `index ${next}`],
    ['Delivered', `${deliveries} messages`],
    ['Incarnation', String(incarnation)],
  ];
  return (
    <table class="facts">
      <tbody>
        {facts.map(([title, value]) => (
          <tr key={title}>
            <th scope="row">{title}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const CELLS_MAX = 40;

function LogTable({ replica: { log } }: { replica: ReplicaView }) {
  if (log === undefined) return <p class="faint">It has no log.</p>;
  const { cells, truncated } = log;
  const hidden = Math.max(0, cells.length - CELLS_MAX);
  if (cells.length === 0) return <p class="faint">Empty.</p>;
  return (
    <ul class="log">
      {truncated > 0 && <li class="cell truncated">{truncated} dropped</li>}
      {hidden > 0 && <li class="cell truncated">{hidden} more</li>}
      {cells.slice(hidden).map((cell) => (
        <li key={cell.index} class={`cell ${cell.state}`} title={describeCell(cell)}>
          <span class="unseen">{cell.index}: </span>
          {cell.label}
          <span class="unseen"> {cell.state}</span>
        </li>
      ))}
    </ul>
  );
}

function Queues(props: { title: string; queues: readonly QueueView[]; empty: string }) {
  const { title, queues, empty } = props;
  const full = queues.filter(({ labels }) => labels.length > 0);
  return (
    <>
      <h3>{title}</h3>
      {full.length === 0 ? (
        <p class="faint">{empty}</p>
      ) : (
        <table class="facts">
          <tbody>
            {full.map(({ from, labels }) => (
              <tr key={from}>
                <th scope="row">from {from}</th>
                <td>{labels.join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
