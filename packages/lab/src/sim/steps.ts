/** Schedules the next step of each participant. Called by `world.ts`. A tie goes to the lower participant. */
export class Steps {
  private readonly dueUs: Float64Array;
  /** A tournament tree over participants. The root, at 1, is the one whose step is due first. */
  private readonly winners: Int32Array;
  private readonly leaves: number;

  constructor(participants: number) {
    this.leaves = 1;
    while (this.leaves < participants) this.leaves *= 2;
    this.dueUs = new Float64Array(this.leaves).fill(Number.POSITIVE_INFINITY);
    this.winners = new Int32Array(this.leaves * 2);
    for (let i = 0; i < this.leaves; i++) this.winners[this.leaves + i] = i;
    for (let i = this.leaves - 1; i > 0; i--) this.replay(i);
  }

  schedule(participant: number, atUs: number): void {
    this.dueUs[participant] = atUs;
    for (let i = (this.leaves + participant) >> 1; i > 0; i >>= 1) this.replay(i);
  }

  cancel(participant: number): void {
    this.schedule(participant, Number.POSITIVE_INFINITY);
  }

  nextUs(): number {
    return this.dueUs[this.winners[1]];
  }

  takeNext(): number {
    const participant = this.winners[1];
    this.cancel(participant);
    return participant;
  }

  private replay(i: number): void {
    const left = this.winners[i * 2];
    const right = this.winners[i * 2 + 1];
    this.winners[i] = this.dueUs[right] < this.dueUs[left] ? right : left;
  }
}
