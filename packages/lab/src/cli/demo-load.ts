/**
 * The load of `tram-lab demo`: messages to random sets of groups at a steady rate, whatever happens to the cluster.
 * Records for each message when it was sent and how long it took.
 */
import type { Client } from 'tram-multicast/internal/client.js';

/** A message that all its destinations have replied to. Times since the load began. */
export interface Answered {
  readonly sentMs: number;
  readonly tookMs: number;
  readonly destinations: readonly number[];
}

const TICK_MS = 5;
/** The load waits while this many messages are unanswered. */
const UNANSWERED_MAX = 2000;
const PAYLOAD_BYTES = 64;
/** How many groups each of ten messages goes to. Most go to one or two, as in a well-sharded service. */
const DESTINATION_COUNTS = [1, 1, 1, 1, 2, 2, 2, 3, 4, 8] as const;

export class DemoLoad {
  answered: Answered[] = [];
  private sent = 0;
  private unanswered = 0;
  private readonly startedMs = performance.now();
  private readonly timer: NodeJS.Timeout;
  private readonly payload = new Uint8Array(PAYLOAD_BYTES);

  constructor(
    private readonly clients: readonly Client[],
    private readonly groups: number,
    private readonly messagesPerSecond: number,
    private readonly onError: (error: unknown) => void,
  ) {
    this.timer = setInterval(() => this.send(), TICK_MS);
  }

  get elapsedMs(): number {
    return performance.now() - this.startedMs;
  }

  /** What was answered so far is not needed any more. */
  forget(): void {
    this.answered = [];
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Sends the messages that are due by now. */
  private send(): void {
    const due = Math.floor((this.elapsedMs * this.messagesPerSecond) / 1000);
    while (this.sent < due && this.unanswered < UNANSWERED_MAX) {
      const client = this.clients[this.sent++ % this.clients.length];
      this.unanswered++;
      this.multicast(client, this.drawDestinations()).catch(this.onError);
    }
  }

  private async multicast(client: Client, destinations: readonly number[]): Promise<void> {
    const sentMs = this.elapsedMs;
    await client.multicast(destinations, this.payload);
    this.unanswered--;
    this.answered.push({ sentMs, tookMs: this.elapsedMs - sentMs, destinations });
  }

  private drawDestinations(): number[] {
    const count = DESTINATION_COUNTS[draw(DESTINATION_COUNTS.length)];
    const groups = Array.from({ length: this.groups }, (_, group) => group);
    return Array.from({ length: count }, () => groups.splice(draw(groups.length), 1)[0]);
  }
}

function draw(below: number): number {
  return Math.floor(Math.random() * below);
}
