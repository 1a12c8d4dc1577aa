/** The table behind the picture: the same state, for readers of tables and for screen readers. */
import type { Flight, ReplicaView, View } from '../run/view.js';
import { player, showsTable } from './state.js';
import { roleText } from './words.js';

const CELLS_MAX = 8;

export function StateTable() {
  const view = player.view.value;
  if (view === undefined) return null;
  return (
    <section
      class={showsTable.value ? 'tables' : 'unseen'}
      aria-label="The state as tables"
      tabIndex={showsTable.value ? 0 : -1}
    >
      <table>
        <caption>Replicas</caption>
        <thead>
          <tr>
            {['Replica', 'Role', 'Promised', 'Permits', 'Log', 'Inboxes and feeds'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {view.replicas.map((replica) => (
            <Row key={replica.name} replica={replica} />
          ))}
        </tbody>
      </table>
      <table>
        <caption>Under way</caption>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">From</th>
            <th scope="col">To</th>
          </tr>
        </thead>
        <tbody>
          {view.flights.map((flight, i) => (
            <FlightRow key={`${flight.from} ${flight.to} ${i}`} flight={flight} view={view} />
          ))}
          {view.flights.length === 0 && (
            <tr>
              <td colSpan={3}>Nothing</td>
            </tr>
          )}
        </tbody>
      </table>
    </section>
  );
}

function Row({ replica }: { replica: ReplicaView }) {
  const { name, promised, permits, log, inboxes, feeds } = replica;
  const cells = log?.cells.slice(-CELLS_MAX).map(({ label, state }) => `${label} (${state})`);
  const waiting = [...inboxes, ...feeds]
    .filter(({ labels }) => labels.length > 0)
    .map(({ from, labels }) => `${labels.join(', ')} from ${from}`);
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{roleText(replica)}</td>
      <td>{promised}</td>
      <td>{permits}</td>
      <td>{cells?.join(', ') || 'empty'}</td>
      <td>{waiting.join('; ') || 'empty'}</td>
    </tr>
  );
}

function FlightRow({ flight, view }: { flight: Flight; view: View }) {
  const { from, to, kind, isTorn } = flight;
  const names = [...view.replicas, ...view.clients];
  return (
    <tr>
      <td>{isTorn ? `${kind}, torn` : kind}</td>
      <td>{names[from].name}</td>
      <td>{names[to].name}</td>
    </tr>
  );
}
