/** What has happened between two pictures of a cluster, in words. */
import type { News, Shown, ShownGroup } from './wire.js';

export type Item = Pick<News, 'kind' | 'text'>;

const NAMES_MAX = 8;

const STATES: Readonly<Record<Shown['state'], Item>> = {
  starting: { kind: 'change', text: 'the cluster is starting' },
  running: { kind: 'good', text: 'every group has a leader' },
  stalled: {
    kind: 'bad',
    text: 'the cluster is stalled: messages that need groups without a leader wait',
  },
  'state-lost': { kind: 'bad', text: 'groups have lost their state for good' },
  down: { kind: 'bad', text: 'no host runs, or none can be reached' },
  closing: { kind: 'change', text: 'the cluster is being taken down' },
};

export function newsBetween(before: Shown, after: Shown): Item[] {
  return [
    ...hostNews(before, after),
    ...groupNews(before, after),
    ...(after.state === before.state ? [] : [STATES[after.state]]),
  ];
}

function hostNews(before: Shown, after: Shown): Item[] {
  return after.hosts.flatMap(({ host, title, state }): Item[] => {
    if (state === before.hosts[host].state) return [];
    const kind = state === 'up' ? 'good' : state === 'starting' ? 'change' : 'bad';
    return [{ kind, text: `host ${title} is ${state}` }];
  });
}

/** A host that ends may lead many groups: what happens to several groups at once is one item. */
function groupNews(before: Shown, after: Shown): Item[] {
  const withoutLeader: string[] = [];
  const leaders: string[] = [];
  const ballots: string[] = [];
  for (const group of after.groups) {
    const old = before.groups[group.group];
    if (group.leader === null) {
      if (old.leader !== null) withoutLeader.push(`g${group.group}`);
    } else if (group.leader !== old.leader) leaders.push(leaderName(group));
    else if (group.ballot !== old.ballot) ballots.push(leaderName(group));
  }
  const items: Item[] = [];
  if (withoutLeader.length > 0)
    items.push({ kind: 'bad', text: `no leader in ${listed(withoutLeader)}` });
  if (leaders.length > 0)
    items.push({ kind: 'change', text: `${listed(leaders)} ${verb(leaders)} now` });
  if (ballots.length > 0)
    items.push({ kind: 'change', text: `${listed(ballots)} ${verb(ballots)} with a new ballot` });
  return items;
}

function leaderName({ group, leader }: ShownGroup): string {
  return `g${group}/${leader}`;
}

function verb({ length }: readonly string[]): string {
  return length === 1 ? 'leads' : 'lead';
}

/** `g0, g1, g2 and 5 more` */
function listed(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_MAX).join(', ');
  return names.length > NAMES_MAX ? `${shown} and ${names.length - NAMES_MAX} more` : shown;
}
