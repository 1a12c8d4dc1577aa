/** The hosts, what they lead, and what can be done with them. */
import type { Shown, ShownHost } from 'tram-multicast/internal/page/wire.js';
import { confirm } from './confirm.js';
import { hasControl } from './link.js';
import { counted } from './words.js';

export function Hosts({ shown }: { readonly shown: Shown }) {
  return (
    <section class="panel hosts" aria-labelledby="hosts-title">
      <h2 id="hosts-title">Hosts</h2>
      <table>
        <thead class="unseen">
          <tr>
            <th scope="col">Host</th>
            <th scope="col">State</th>
            <th scope="col">Leads</th>
            {hasControl.value ? <th scope="col">Actions</th> : null}
          </tr>
        </thead>
        <tbody>
          {shown.hosts.map((host) => (
            <HostRow key={host.host} host={host} shown={shown} />
          ))}
        </tbody>
      </table>
      {shown.isSupervised === false ? (
        <p class="note">
          Not supervised: no process restarts hosts that end, until `tram up` does.
        </p>
      ) : null}
    </section>
  );
}

function HostRow({ host, shown }: { readonly host: ShownHost; readonly shown: Shown }) {
  const { host: id, title, state, details } = host;
  const led = shown.groups.filter(
    ({ leader, replicas }) => leader !== null && replicas[leader].host === id,
  );
  const kind = state === 'up' ? 'good' : state === 'starting' ? 'change' : 'bad';
  return (
    <tr>
      <th scope="row">
        {title}
        <span class="details">{details}</span>
      </th>
      <td>
        <span class={`badge ${kind}`}>{state}</span>
      </td>
      <td>{led.length === 0 ? 'leads none' : `leads ${led.length}`}</td>
      {hasControl.value ? (
        <td class="actions">
          <HostActions host={host} shown={shown} led={led.length} />
        </td>
      ) : null}
    </tr>
  );
}

interface ActionProps {
  readonly host: ShownHost;
  readonly shown: Shown;
  readonly led: number;
}

function HostActions({ host: { host, title, state }, shown, led }: ActionProps) {
  const replicas = shown.groups.flatMap((group) =>
    group.replicas.filter((replica) => replica.host === host),
  );
  const runs = `It runs ${counted(replicas.length, 'replica')}`;
  const isUp = state === 'up';
  return (
    <>
      <button
        type="button"
        disabled={!isUp}
        onClick={() =>
          confirm({
            request: { action: 'crash', host },
            title: `Crash host ${title}`,
            explanation: `${runs} and leads ${counted(led, 'group')}. It ends at once, and stays down until it is restarted. Groups that keep a majority go on.`,
          })
        }
      >
        Crash<span class="unseen"> host {title}</span>
      </button>
      <button
        type="button"
        disabled={state === 'starting'}
        onClick={() =>
          confirm({
            request: { action: 'restart', host },
            title: `Restart host ${title}`,
            explanation: isUp
              ? `${runs}. It hands its leaderships over, ends in order and starts again with its memory.`
              : `${runs}. It starts again with the memory that it has left.`,
          })
        }
      >
        Restart<span class="unseen"> host {title}</span>
      </button>
    </>
  );
}
