/**
 * Plays a run: forwards event by event, backwards by running it again from its beginning. Everything that the page shows
 * of the run is in the signals here.
 *
 * A run takes its time, so long ways are gone in slices, between which the page is drawn and takes keys. Whatever the
 * user does next ends a way that is not finished.
 *
 * Invariant: start, deeds and the number of events determine what is shown.
 */
import { batch, signal } from '@preact/signals';
import { type Deed, formatLink, type RunLink } from 'tram-lab/dist/sim/link.js';
import type { Failure, Line, Run } from '../run/subject.js';
import type { View } from '../run/view.js';
import { digestOf } from './digest.js';
import { loadSubject, type Subject } from './subjects.js';

const SLICE_MS = 25;
/** How many events before the present one are looked at for the last visible change. */
const LOOK_BACK_EVENTS = 400;
/** A step ends after so many events even if nothing visible has changed. */
const STEP_EVENTS_MAX = 3000;

export class Player {
  readonly view = signal<View | undefined>(undefined);
  readonly story = signal<readonly Line[]>([]);
  readonly failure = signal<Failure | undefined>(undefined);
  readonly isOver = signal(false);
  /** While a long way is gone: how many events were done. */
  readonly busy = signal<number | undefined>(undefined);
  readonly link = signal<RunLink>({ seed: 1, options: {}, deeds: [], events: 0 });
  /** The text of the link to what is shown. */
  readonly fragment = signal('');
  /** Why something could not be done. */
  readonly complaint = signal<string | undefined>(undefined);
  run: Run | undefined;
  private subject: Subject | undefined;
  private deeds: Deed[] = [];
  private nextDeed = 0;
  private ways = 0;
  /** The visible changes between two events, as far as they are known. */
  private changes: { from: number; to: number; events: readonly number[] } = NO_CHANGES;

  /** Begin another run, and go to where its link says. Returns false if that is not possible. */
  async open(link: RunLink): Promise<boolean> {
    const way = ++this.ways;
    this.complaint.value = undefined;
    this.busy.value = 0;
    let subject: Subject;
    try {
      subject = await loadSubject(link.mutation);
      new subject.Run(link);
    } catch (error) {
      this.complaint.value = (error as Error).message;
      this.busy.value = undefined;
      return false;
    }
    if (way !== this.ways) return false;
    this.subject = subject;
    this.link.value = link;
    this.deeds = [...link.deeds];
    this.changes = NO_CHANGES;
    this.rewind();
    return this.goTo(link.events);
  }

  private rewind(): void {
    this.run = new this.subject!.Run(this.link.value);
    this.nextDeed = 0;
    this.doDue();
  }

  get events(): number {
    return this.run?.events ?? 0;
  }

  // --- ways -----------------------------------------------------------------------------------

  /** Show the run after so many events. */
  goTo(events: number): Promise<boolean> {
    return this.go((run) => run.events >= events, events < this.events);
  }

  /** Go on to the next visible change. */
  step(): Promise<boolean> {
    if (this.run === undefined) return Promise.resolve(false);
    const from = this.events;
    const before = digestOf(this.run.view());
    const lines = this.run.story.length;
    return this.go(
      (run) =>
        run.events > from &&
        (run.story.length !== lines ||
          run.events - from >= STEP_EVENTS_MAX ||
          digestOf(run.view()) !== before),
    );
  }

  /** Go back to the visible change before this one. */
  async stepBack(): Promise<void> {
    const { events } = this;
    if (events === 0) return;
    const { from, to } = this.changes;
    if (events <= from || events > to) {
      if (!(await this.lookBack(events))) return;
    }
    const last = this.changes.events.findLast((change) => change < events);
    await this.goTo(last ?? this.changes.from);
  }

  /** Find the visible changes in the last events before this one. Returns false if the user did something else meanwhile. */
  private async lookBack(to: number): Promise<boolean> {
    const from = Math.max(0, to - LOOK_BACK_EVENTS);
    const events: number[] = [];
    let digest = '';
    let lines = 0;
    const isDone = await this.go((run) => {
      if (run.events < from) return false;
      const now = run.events < to ? digestOf(run.view()) : digest;
      if (run.events > from && (now !== digest || run.story.length !== lines)) {
        events.push(run.events);
      }
      digest = now;
      lines = run.story.length;
      return run.events >= to;
    }, true);
    if (isDone) this.changes = { from, to, events };
    return isDone;
  }

  /** Go on, or back, by one event. */
  move(events: number): Promise<boolean> {
    return this.goTo(Math.max(0, this.events + events));
  }

  /** Go on to the next line of the story. */
  line(): Promise<boolean> {
    const lines = this.run?.story.length ?? 0;
    const from = this.events;
    return this.go((run) => run.story.length > lines || run.events - from > 100_000);
  }

  /** Go back to the line of the story before this one. */
  lineBack(): Promise<boolean> {
    const before = this.story.value.filter(({ events }) => events < this.events).at(-1);
    return this.goTo(before?.events ?? 0);
  }

  /** Go on to a line of the story that begins with these words. Returns false if none comes. */
  async until(words: string): Promise<boolean> {
    let told = this.run!.story.length;
    let isTold = false;
    const fromUs = this.run!.timeUs;
    const isDone = await this.go((run) => {
      for (; told < run.story.length; told++) {
        const { text } = run.story[told];
        isTold ||= text.startsWith(words) && !/^\w/.test(text.slice(words.length));
      }
      return isTold || run.timeUs - fromUs > UNTIL_US_MAX;
    });
    if (isDone && !isTold) this.complaint.value = `It does not happen: ${words}.`;
    return isTold;
  }

  /** Go on until each group has a leader. */
  untilLed(): Promise<boolean> {
    return this.go((run) => run.isLed || run.events > 100_000);
  }

  /** Go on until nothing is told for a while; a drawn run, to its end. */
  untilQuiet(): Promise<boolean> {
    if (this.link.value.cluster === undefined) return this.go(() => false);
    const fromUs = this.run!.timeUs;
    let lines = this.run!.story.length;
    let quietFromUs = fromUs;
    return this.go(({ story, timeUs }) => {
      if (story.length !== lines) quietFromUs = timeUs;
      lines = story.length;
      return timeUs - quietFromUs > QUIET_US || timeUs - fromUs > UNTIL_US_MAX;
    });
  }

  /**
   * Go on until `isThere`, or the run is over. Returns false if the user has done something else meanwhile.
   * @param rewinds  from the beginning
   */
  private async go(isThere: (run: Run) => boolean, rewinds = false): Promise<boolean> {
    const way = ++this.ways;
    if (this.subject === undefined) return false;
    this.complaint.value = undefined;
    if (rewinds) this.rewind();
    if (!(await this.goInSlices(way, isThere))) return false;
    this.show();
    return true;
  }

  private async goInSlices(way: number, isThere: (run: Run) => boolean): Promise<boolean> {
    const run = this.run!;
    let untilMs = performance.now() + SLICE_MS;
    let check = 0;
    while (!isThere(run) && run.advance()) {
      this.doDue();
      if (++check % 32 !== 0 || performance.now() < untilMs) continue;
      this.busy.value = run.events;
      await new Promise((resolve) => setTimeout(resolve));
      if (way !== this.ways) return false;
      untilMs = performance.now() + SLICE_MS;
    }
    return true;
  }

  private doDue(): void {
    while (this.deeds[this.nextDeed]?.afterEvents === this.run!.events) {
      this.run!.act(this.deeds[this.nextDeed++].command);
    }
  }

  // --- deeds ----------------------------------------------------------------------------------

  /** Do something to the cluster, now. What was done later in this run is forgotten. Returns false if it can't be done. */
  act(...commands: string[]): boolean {
    const { run } = this;
    if (run === undefined) return false;
    this.ways++;
    this.complaint.value = undefined;
    for (const command of commands) {
      const complaint = run.act(command);
      if (complaint !== undefined) {
        this.complaint.value = complaint;
        break;
      }
      this.changes = NO_CHANGES;
      this.deeds = this.deeds.filter(({ afterEvents }) => afterEvents <= run.events);
      this.deeds.push({ afterEvents: run.events, command });
      this.nextDeed = this.deeds.length;
    }
    this.show();
    return this.complaint.value === undefined;
  }

  /** Undo what was done last. */
  async undo(): Promise<void> {
    const last = this.deeds.pop();
    if (last === undefined) return;
    const events = Math.min(this.events, last.afterEvents);
    this.changes = NO_CHANGES;
    this.rewind();
    await this.goTo(events);
  }

  private show(): void {
    const run = this.run!;
    const { link, deeds } = this;
    batch(() => {
      link.value = { ...link.value, deeds: [...deeds], events: run.events };
      this.fragment.value = formatLink(link.value);
      this.view.value = run.view();
      this.story.value = [...run.story];
      this.failure.value = run.failure;
      this.isOver.value = run.isOver;
      this.busy.value = undefined;
    });
  }
}

const NO_CHANGES = { from: 0, to: 0, events: [] };
const QUIET_US = 600;
const UNTIL_US_MAX = 50_000;
