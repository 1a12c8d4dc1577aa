/**
 * Checks that a history is strictly serializable: that there is an order of all transactions that explains every reply, and that agrees
 * with real time. It knows nothing of the store.
 *
 * Lists are only appended to, and each value is appended once. So each read shows the order of the appends before it, and the
 * transactions depend on each other in ways that can be read off: as the checker Elle does it (Kingsbury, Alvaro 2020). A cycle of
 * dependencies is a violation. Registers are only swapped, so each write shows which one was before it.
 */

export type Operation =
  /** Of a list. */
  | { readonly type: 'append'; readonly key: string; readonly value: string }
  | { readonly type: 'read'; readonly key: string; readonly values?: readonly string[] }
  /** Of a register. The reply is the value before; null if there was none. */
  | {
      readonly type: 'swap';
      readonly key: string;
      readonly value: string;
      readonly before?: string | null;
    };

export interface Transaction {
  readonly name: string;
  readonly operations: readonly Operation[];
  readonly invoked: number;
  /** Infinity if there was no reply. */
  readonly completed: number;
  /** `failed`: it had no effect. `unknown`: it may have had one. Then operations have no replies. */
  readonly outcome: 'ok' | 'failed' | 'unknown';
}

/** Says in words what is wrong, with the transactions that show it. */
export type Violation = string;

interface Edge {
  readonly to: number;
  readonly why: string;
}

/** @returns undefined if the history is strictly serializable */
export function check(history: readonly Transaction[]): Violation | undefined {
  const writers = new Map<string, number>();
  for (const [i, { operations }] of history.entries()) {
    for (const operation of operations) {
      if (operation.type !== 'read') writers.set(version(operation.key, operation.value), i);
    }
  }
  const orders = new Map<string, readonly string[]>();
  const wrong = orderLists(history, orders) ?? orderRegisters(history, orders);
  if (wrong !== undefined) return wrong;
  for (const [key, values] of orders) {
    for (const value of values) {
      const writer = writers.get(version(key, value));
      if (writer === undefined) return `${key} has ${value}, which nobody has written`;
      const { outcome, name } = history[writer];
      if (outcome === 'failed') return `${key} has ${value} of ${name}, which has failed`;
    }
    if (new Set(values).size < values.length)
      return `${key} has a value twice: ${values.join(' ')}`;
  }
  const edges = dependencies(history, orders, writers);
  addRealTime(history, edges);
  return findCycle(history, edges);
}

function version(key: string, value: string): string {
  return `${key} ${value}`;
}

/** The order of appends is the longest read. All others are its beginnings. */
function orderLists(
  history: readonly Transaction[],
  orders: Map<string, readonly string[]>,
): Violation | undefined {
  const reads = history.flatMap(({ name, operations }) =>
    operations.flatMap((operation) =>
      operation.type === 'read' && operation.values !== undefined
        ? [{ name, key: operation.key, values: operation.values }]
        : [],
    ),
  );
  for (const { key, values } of reads) {
    if (values.length >= (orders.get(key)?.length ?? 0)) orders.set(key, values);
  }
  for (const { name, key, values } of reads) {
    const longest = orders.get(key)!;
    if (values.some((value, i) => value !== longest[i])) {
      return `${name} reads ${key} as ${values.join(' ')}, which is no beginning of ${longest.join(' ')}`;
    }
  }
  return undefined;
}

/** Each swap follows the one whose value it has found. */
function orderRegisters(
  history: readonly Transaction[],
  orders: Map<string, readonly string[]>,
): Violation | undefined {
  const next = new Map<string, Map<string | null, string>>();
  for (const { name, operations } of history) {
    for (const operation of operations) {
      if (operation.type !== 'swap' || operation.before === undefined) continue;
      const { key, value, before } = operation;
      const swaps = next.get(key) ?? new Map<string | null, string>();
      next.set(key, swaps);
      const other = swaps.get(before);
      if (other !== undefined)
        return `${name} and another swap of ${key} both find ${before}: ${other}`;
      swaps.set(before, value);
    }
  }
  for (const [key, swaps] of next) {
    const order: string[] = [];
    // A swap without a reply may stand between two chains: only the first one counts.
    for (let value = swaps.get(null); value !== undefined; value = swaps.get(value)) {
      if (order.includes(value)) return `the swaps of ${key} form a circle: ${order.join(' ')}`;
      order.push(value);
    }
    orders.set(key, order);
  }
  return undefined;
}

function dependencies(
  history: readonly Transaction[],
  orders: ReadonlyMap<string, readonly string[]>,
  writers: ReadonlyMap<string, number>,
): Edge[][] {
  const edges: Edge[][] = history.map(() => []);
  const add = (from: number | undefined, to: number | undefined, why: string): void => {
    if (from !== undefined && to !== undefined && from !== to) edges[from].push({ to, why });
  };
  for (const [key, values] of orders) {
    const writerAt = (at: number): number | undefined => writers.get(version(key, values[at]));
    for (let at = 1; at < values.length; at++) {
      add(writerAt(at - 1), writerAt(at), `${key}: ${values[at]} follows ${values[at - 1]}`);
    }
    // Appends that no read shows come after all that reads show.
    const unseen = unseenAppends(history, key, values);
    for (const [reader, { operations }] of history.entries()) {
      for (const operation of operations) {
        if (operation.type !== 'read' || operation.key !== key || !operation.values) continue;
        const { length } = operation.values;
        if (length > 0) add(writerAt(length - 1), reader, `${key}: reads ${values[length - 1]}`);
        if (length < values.length) {
          add(reader, writerAt(length), `${key}: does not read ${values[length]}`);
        }
        for (const [writer, value] of unseen) {
          if (!sees(history[reader], key, value)) {
            add(reader, writer, `${key}: does not read ${value}`);
          }
        }
      }
    }
  }
  return edges;
}

/** Appends that have succeeded, but are in no read. */
function unseenAppends(
  history: readonly Transaction[],
  key: string,
  seen: readonly string[],
): [writer: number, value: string][] {
  return history.flatMap(({ operations, outcome }, writer) =>
    operations.flatMap((operation): [number, string][] =>
      operation.type === 'append' &&
      operation.key === key &&
      outcome === 'ok' &&
      !seen.includes(operation.value)
        ? [[writer, operation.value]]
        : [],
    ),
  );
}

function sees({ operations }: Transaction, key: string, value: string): boolean {
  return operations.some(
    (operation) =>
      operation.type === 'append' && operation.key === key && operation.value === value,
  );
}

/** What has completed comes before what is invoked later. A chain of nodes, one for each completion, stands for all these pairs. */
function addRealTime(history: readonly Transaction[], edges: Edge[][]): void {
  const events = history.flatMap(({ invoked, completed, outcome }, i) => [
    { at: invoked, i, isEnd: false },
    ...(outcome === 'ok' ? [{ at: completed, i, isEnd: true }] : []),
  ]);
  events.sort((a, b) => a.at - b.at || Number(a.isEnd) - Number(b.isEnd));
  let last: number | undefined;
  for (const { i, isEnd } of events) {
    if (!isEnd) {
      if (last !== undefined) edges[last].push({ to: i, why: 'begins later' });
      continue;
    }
    const node = edges.push([]) - 1;
    edges[i].push({ to: node, why: 'is over' });
    if (last !== undefined) edges[last].push({ to: node, why: '' });
    last = node;
  }
}

/** A shortest cycle through the first transaction that is on one. */
function findCycle(
  history: readonly Transaction[],
  edges: readonly Edge[][],
): Violation | undefined {
  const start = onCycle(edges);
  if (start === undefined) return undefined;
  const from = new Map<number, { node: number; why: string }>();
  const queue = [start];
  for (let node = queue.shift(); node !== undefined; node = queue.shift()) {
    for (const { to, why } of edges[node]) {
      if (!from.has(to)) {
        from.set(to, { node, why });
        queue.push(to);
      }
    }
    if (from.has(start)) break;
  }
  const steps: string[] = [];
  for (let node = start; steps.length === 0 || node !== start; ) {
    const { node: before, why } = from.get(node)!;
    const name = history[before]?.name;
    if (name !== undefined) steps.unshift(`${name} -> (${why || 'real time'})`);
    node = before;
  }
  return `a cycle: ${steps.join(' ')} ${history[start]?.name ?? 'the first'}`;
}

/** A node on a cycle: one that is left after all nodes without predecessors were taken away, and all without successors. */
function onCycle(edges: readonly Edge[][]): number | undefined {
  const incoming = new Int32Array(edges.length);
  for (const list of edges) for (const { to } of list) incoming[to]++;
  const queue = [...incoming.keys()].filter((node) => incoming[node] === 0);
  let left = edges.length;
  for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
    left--;
    incoming[node] = -1;
    for (const { to } of edges[node]) if (--incoming[to] === 0) queue.push(to);
  }
  if (left === 0) return undefined;
  // Every node that is left has a predecessor that is left: going backwards ends in a cycle.
  const before = new Int32Array(edges.length).fill(-1);
  for (const [node, list] of edges.entries()) {
    if (incoming[node] > 0) for (const { to } of list) if (incoming[to] > 0) before[to] = node;
  }
  let node = incoming.findIndex((count) => count > 0);
  for (let steps = 0; steps < left; steps++) node = before[node];
  return node;
}
