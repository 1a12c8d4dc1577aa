/**
 * The hosts that we dial. Of two hosts the one with the higher number dials; clients and observers dial all hosts. A
 * connection works in both directions, so a client needs no port. Called by `network.ts`.
 *
 * A host that accepts us tells us the key to its arena (`handshake.ts`); we then write the key to ours into that arena
 * (`greeting.ts`). An observer is never written to, so it sends no key.
 */
import { HOST } from '../arena.js';
import type { Connection } from '../fabric/connection.js';
import type { Fabric } from '../fabric/fabric.js';
import type { RemoteRegion } from '../fabric/registration.js';
import { Dialing } from './dialing.js';
import { greetingToken, greetingWords } from './greeting.js';
import { CALLER, type Handshake, type Hello, REFUSAL, REFUSED, type Welcome } from './handshake.js';
import type { KnownHosts } from './known-hosts.js';
import type { LinkTable } from './link-table.js';
import { type NetworkOptions, nameOfHost } from './network-options.js';

export class Dialer {
  /** By host. */
  private readonly dialings: readonly Dialing[];
  private assigned: Welcome | undefined;

  constructor(
    private readonly options: NetworkOptions,
    private readonly handshake: Handshake,
    private readonly links: LinkTable,
    private readonly knownHosts: KnownHosts,
    fabric: Fabric,
    /** The link to a host has opened. */
    private readonly onOpen: (host: number) => void,
  ) {
    const { self, hosts, log, nowUs } = options;
    const dialed = self.caller === CALLER.host ? hosts.slice(0, self.number) : hosts;
    this.dialings = dialed.map(
      (peer, host) =>
        new Dialing(host, {
          handshake,
          connect: (data) => fabric.connect(peer.host, peer.port, data),
          complain: (why, isRefused) => {
            // A host that has not started yet, or has stopped in order, is nothing to warn of.
            const isExpected =
              !isRefused && (!links.hasBeenOpen(host) || links.hasSaidFarewell(host));
            const text = `can't connect to ${nameOfHost(options, host)}: ${why}`;
            log(isExpected ? 'info' : 'warn', text);
            if (this.of(host)?.refusal === REFUSAL.olderMemory) {
              options.onNewerMemory?.(nameOfHost(options, host));
            }
          },
          nowUs,
        }),
    );
  }

  /** The slot that a new client was assigned, once it was. */
  get slot(): Welcome | undefined {
    return this.assigned;
  }

  of(host: number): Dialing | undefined {
    return this.dialings[host];
  }

  ofConnection(connection: Connection): Dialing | undefined {
    return this.dialings.find((dialing) => dialing.connection === connection);
  }

  /** Dial where it is time to, and give up calls that are not answered. */
  run(nowUs: number): void {
    for (const dialing of this.dialings) {
      if (dialing.isDue(nowUs)) this.dial(dialing, nowUs);
      else if (dialing.isUnanswered(nowUs, this.options.patienceUs)) {
        dialing.giveUp('it does not answer');
      }
    }
  }

  private dial(dialing: Dialing, nowUs: number): void {
    // A new client calls one host at a time until one of them has assigned it a slot.
    const needsSlot = this.options.self.caller === CALLER.newClient && this.assigned === undefined;
    if (needsSlot && this.dialings.some(({ isWaiting }) => !isWaiting)) return;
    dialing.dial(this.newHello(dialing.host), nowUs);
  }

  /** A client that has been assigned a slot keeps it. */
  private newHello(host: number): Hello {
    const { handshake, assigned, knownHosts } = this;
    if (assigned !== undefined) {
      const { slot: number, session } = assigned;
      return handshake.newHello({ caller: CALLER.client, number, session, birth: 0, seenBirth: 0 });
    }
    const { introduction: session, birth } = knownHosts;
    const seenBirth = knownHosts.newestBirth(host);
    return handshake.newHello({ ...this.options.self, session, birth, seenBirth });
  }

  /** A host has accepted our call. */
  onConnected(dialing: Dialing, connection: Connection, data: Uint8Array): void {
    const welcome = dialing.onConnected(data);
    if (welcome === undefined) return;
    const { host } = dialing;
    const { caller } = this.options.self;
    if (caller === CALLER.newClient) this.takeSlot(host, welcome);
    if (caller === CALLER.host) {
      const refusal = this.knownHosts.refusalOf(host, welcome);
      if (refusal > 0) {
        dialing.giveUp(REFUSED[refusal]);
        return;
      }
      this.knownHosts.expect(host);
      this.knownHosts.learn(host, welcome.slot, welcome);
    }
    const isObserver = caller === CALLER.observer;
    const region = isObserver ? undefined : this.links.register(host);
    if (region !== undefined) this.links.keep(connection, region);
    this.links.openLink(host, connection, welcome, this.ownHost);
    if (region !== undefined) this.greet(dialing, region, welcome);
    if (caller === CALLER.host) this.onOpen(host);
  }

  /** The first slot counts. Hosts that had none left accept us from now on. */
  private takeSlot(host: number, welcome: Welcome): void {
    if (this.assigned !== undefined) return;
    this.assigned = welcome;
    this.knownHosts.noteEra(host, welcome.era);
    for (const dialing of this.dialings) dialing.retryNow();
  }

  /** Tell the host the key to our arena. Nothing goes over the connection before. */
  private greet({ host, answer }: Dialing, region: RemoteRegion, { session }: Welcome): void {
    const { era } = this.knownHosts;
    const hasRun = this.knownHosts.bitsFor(host, session);
    const greeting = greetingWords({ region, hasRun, era }, greetingToken(answer));
    const at = this.options.map.host(this.ownHost) + HOST.greeting;
    this.links.byHost[host]!.writeWords(at, greeting);
  }

  /** The number of our own line in the arenas of others. */
  get ownHost(): number {
    const { map, self } = this.options;
    if (self.caller === CALLER.host) return self.number;
    return map.hosts + (this.assigned?.slot ?? self.number);
  }
}
