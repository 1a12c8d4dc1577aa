/** Scripted attacks on the plan of a recovery: which snapshots at marks it uses that do not count yet. */
import type { Survey, SurveyedSequence } from 'tram-multicast/internal/journal/recovery-asks.js';
import type { ClusterShape } from 'tram-multicast/internal/journal/shape.js';
import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { expect } from 'vitest';
import { attack } from '../protocol/attack.js';

const HARM = /expected .+ to/;
const FIRST = 2;
const ROOT = 0;
const CHILD = 1;

/** A root and a child, each with a member on each of three hosts. */
const SHAPE: ClusterShape = {
  overlay: new Overlay([-1, ROOT]),
  replicas: 3,
  hosts: 3,
  hostsOf: () => [0, 1, 2],
  nameOf: (host) => `host ${host}`,
  firstIndex: FIRST,
};

/** A sequence whose snapshot counts, with two entries, of which the second one is mark 1. */
function counted(group: number): SurveyedSequence {
  const end = FIRST + 2;
  return { ...AT_START, group, snapshotIndex: FIRST, end, mark: 0, lastMark: 1 };
}

/** The same host has left entries out, and goes on from a snapshot at mark 2, with one entry. */
function atMark2(group: number): SurveyedSequence {
  return { ...AT_START, group, snapshotIndex: FIRST + 10, end: FIRST + 11, mark: 2, lastMark: 2 };
}

const AT_START = { era: 1, isOpened: true, isFirst: false, snapshotFromParent: FIRST };

function survey(...sequences: SurveyedSequence[]): Survey {
  return { promised: 2, sequences, firstSession: 1, hasOpened: true };
}

attack(
  'a recovery does not use a snapshot at a mark that some group does not reach',
  { 'marks-used-beyond': HARM },
  ({ planEra }) => {
    // 1. Host 0 was left behind. Its root goes on from a snapshot at mark 2, and its child from none yet.
    // 2. All power is cut. Hosts 0 and 1 are back.
    //    Harm: the root begins at mark 2. What it has sent to the child before that is in no journal any more.
    const surveys = new Map([
      [0, survey(counted(ROOT), atMark2(ROOT), counted(CHILD))],
      [1, survey(counted(ROOT), counted(CHILD))],
    ]);
    const { value: asks } = planEra(SHAPE, surveys).next();
    expect(asks).toMatchObject([{ what: 'cut', group: CHILD, parentEnd: FIRST + 2 }]);
  },
);

attack(
  'a recovery uses snapshots at a mark that every group reaches',
  { 'marks-not-used': HARM },
  ({ planEra }) => {
    // As above, but the child goes on from a snapshot at mark 2 as well. The mark may be complete: others may have replaced
    // what is older.
    const surveys = new Map([
      [0, survey(counted(ROOT), atMark2(ROOT), counted(CHILD), atMark2(CHILD))],
      [1, survey(counted(ROOT), counted(CHILD))],
    ]);
    const { value: asks } = planEra(SHAPE, surveys).next();
    expect(asks).toMatchObject([{ what: 'cut', group: CHILD, parentEnd: FIRST + 11 }]);
  },
);
