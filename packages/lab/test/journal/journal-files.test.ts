/**
 * Scripted attacks on the journal of one host: what is durable survives a power cut at any call to its disk, whatever that
 * keeps of all that was not synced; and a promise binds the host.
 */
import { expect } from 'vitest';
import { JournalStage } from '../../src/sim/journal-stage.js';
import { attack } from '../protocol/attack.js';

const { firstIndex: FIRST } = JournalStage;
/** What the script expects, and what it finds with a mutation. */
const HARM = /expected .+ to/;
const TIMES = 20;
/** Few power cuts keep one name and lose an earlier one. */
const TIMES_FOR_NAMES = 40;

/** The indices of the entries from `from` on, below `end`. */
const indices = (from: number, end: number) =>
  Array.from({ length: end - from }, (_, i) => from + i);

function addMany(stage: JournalStage, count: number): void {
  for (let i = 0; i < count; i++) stage.add();
}

attack(
  'entries behind a gap are not durable before a snapshot behind it counts',
  { 'fetched-counts': HARM, 'gap-as-whole': HARM },
  ({ JournalStage }) => {
    // 1. The disk is slow: the journal leaves out entries, and goes on from a snapshot.
    // 2. The snapshot is not stable: a recovery may still cut it off.
    //    Harm: what the journal has before the gap is gone; or what it has behind the gap counts, and nobody can read it.
    const stage = new JournalStage();
    const { journal } = stage;
    addMany(stage, 2);
    journal.leaveOut();
    stage.snapshot(FIRST + 10);
    addMany(stage, 2);
    expect(journal.durable).toBe(FIRST + 2);
    expect(stage.entries).toEqual(indices(FIRST, FIRST + 2));
    stage.stable(FIRST + 10);
    expect(journal.durable).toBe(FIRST + 12);
    expect(stage.entries).toEqual(indices(FIRST + 10, FIRST + 12));
  },
);

attack(
  'a snapshot at a mark counts once the mark is complete',
  { 'counts-incomplete': HARM },
  ({ JournalStage }) => {
    // Harm: what the journal has before the gap is gone, and other groups may lack what the snapshot needs of them.
    const stage = new JournalStage();
    const { journal } = stage;
    addMany(stage, 2);
    journal.leaveOut();
    stage.snapshot(FIRST + 10, 3);
    stage.complete(2);
    expect(journal.durable).toBe(FIRST + 2);
    expect(journal.heldMark).toBe(3);
    stage.complete(3);
    expect(journal.durable).toBe(FIRST + 10);
  },
);

attack(
  'a host holds a mark once its entries are durable',
  { 'mark-held-unsynced': HARM },
  ({ JournalStage }) => {
    // Harm: the mark is called complete. After a power cut, this host lacks it.
    const stage = new JournalStage({ syncsEachBatch: false });
    addMany(stage, 2);
    stage.mark(1);
    expect(stage.journal.durable).toBe(FIRST);
    expect(stage.journal.heldMark).toBe(0);
  },
);

attack(
  'a power cut while entries are written loses none that is durable',
  { 'checksum-ignored': /not the one that was handed over/ },
  ({ JournalStage }) => {
    // Harm: of a batch that was torn, something is read that nobody has sent.
    JournalStage.cutEverywhere(
      TIMES,
      () => undefined,
      (stage) => addMany(stage, 5),
      (stage, durable) => {
        const { entries } = stage;
        expect(entries).toEqual(indices(FIRST, FIRST + entries.length));
        expect(FIRST + entries.length).toBeGreaterThanOrEqual(durable);
      },
    );
  },
);

attack(
  'a power cut while a snapshot replaces segments loses neither',
  {
    'folder-not-synced': /expected .+ to|lacks the entries/,
    'segments-freed-together': /is missing/,
  },
  ({ JournalStage }) => {
    // 1. A snapshot counts. Older snapshots are removed, and segments become spare files.
    // 2. The power is cut. Any of these names may be lost, and others kept.
    //    Harm: the old snapshot is gone, and the new one has no name yet; or a segment is missing between two others.
    const counted = FIRST + 14;
    JournalStage.cutEverywhere(
      TIMES_FOR_NAMES,
      (stage) => {
        addMany(stage, 14);
        stage.snapshot(counted);
        stage.add();
      },
      (stage) => stage.stable(counted),
      (stage, durable) => {
        expect([FIRST, counted]).toContain(stage.sequence?.snapshotIndex);
        expect(stage.sequence?.end).toBe(durable);
        expect(stage.entries).toEqual(indices(stage.sequence!.snapshotIndex, durable));
      },
    );
  },
);

attack(
  'a power cut before a segment that is used again has a batch',
  { 'stale-batches': /is corrupt/ },
  ({ JournalStage }) => {
    // Harm: the batches of its earlier use are taken for those of the new one.
    const counted = FIRST + 10;
    JournalStage.cutEverywhere(
      TIMES,
      (stage) => {
        addMany(stage, 10);
        stage.snapshot(counted);
        stage.stable(counted);
      },
      (stage) => addMany(stage, 8),
      (stage, durable) => {
        const { entries } = stage;
        expect(entries).toEqual(indices(counted, counted + entries.length));
        expect(counted + entries.length).toBeGreaterThanOrEqual(durable);
      },
    );
  },
);

attack(
  'what a host has shown to a recovery survives a power cut',
  { 'cache-not-settled': HARM },
  ({ JournalStage }) => {
    // 1. The host has written entries, and ends before they are synced. The page cache still has them.
    // 2. It starts again, promises an era, and is surveyed. Others count on what it has shown.
    // 3. Its power is cut.
    //    Harm: the entries are gone.
    for (let seed = 1; seed <= TIMES; seed++) {
      const stage = new JournalStage({ seed, syncsEachBatch: false });
      addMany(stage, 5);
      const before = stage.recovery();
      before.promise(2);
      const shown = before.survey();
      expect(shown.sequences).toMatchObject([{ end: FIRST + 5 }]);
      stage.disk.cutPower();
      expect(stage.recovery().survey()).toEqual(shown);
    }
  },
);

attack(
  'what a host has shown to a recovery survives, although a sync had failed before',
  { 'failed-sync-trusted': HARM },
  ({ JournalStage }) => {
    // 1. The sync of a batch fails, and the host ends. The page cache has the batch, and takes it for synced.
    // 2. The host starts again, promises an era, and is surveyed. Others count on what it has shown.
    // 3. Its power is cut.
    //    Harm: the batch is gone.
    for (let seed = 1; seed <= TIMES; seed++) {
      const stage = new JournalStage({ seed });
      addMany(stage, 2);
      stage.disk.failAfter(0);
      expect(() => stage.add()).toThrow('the disk failed');
      const before = stage.recovery();
      before.promise(2);
      const shown = before.survey();
      expect(shown.sequences).toMatchObject([{ end: FIRST + 3 }]);
      stage.disk.cutPower();
      expect(stage.recovery().survey()).toEqual(shown);
    }
  },
);

attack(
  'a host promises no era below one that it has promised, even after a power cut',
  { 'promises-lower-eras': HARM, 'promise-not-synced': HARM },
  ({ JournalStage }) => {
    // Harm: two recoveries count on the same host, and each opens an era of its own.
    for (let seed = 1; seed <= TIMES; seed++) {
      const stage = new JournalStage({ seed });
      expect(stage.recovery().promise(5).isAccepted).toBe(true);
      stage.disk.cutPower();
      expect(stage.recovery().promise(4)).toMatchObject({ isAccepted: false, promised: 5 });
    }
  },
);

attack(
  'a host that has withdrawn its promise does not open the later era',
  { 'withdrawn-not-told': HARM, 'withdrawn-era-kept': HARM },
  ({ JournalStage }) => {
    // 1. The host promises era 2, and writes its opening snapshot. The recovery is not completed.
    // 2. It sees a quorum run in era 1, and joins that.
    // 3. The recovery goes on: it asks the host to open era 2 after all.
    //    Harm: the host counts for both eras.
    const stage = new JournalStage();
    addMany(stage, 2);
    stage.recovery().promise(2);
    stage.open(2);
    stage.join(1);
    stage.disk.cutPower();
    const { survey, promise, opened } = stage.recovery();
    expect(survey().sequences.map(({ era }) => era)).toEqual([1]);
    // A host opens an era only if that is the one that it has promised.
    if (survey().promised === 2) stage.open(2);
    expect(opened(2)).toBe(false);
    expect(promise(2).isAccepted).toBe(false);
    expect(stage.entries).toEqual(indices(FIRST, FIRST + 2));
  },
);
