/** What a mutation is judged by: the simulator and the stage of scripted attacks, around one copy of the protocol. */
export { HostJournal } from 'tram-multicast/internal/journal/host-journal.js';
export { planEra } from 'tram-multicast/internal/journal/recovery-plan.js';
export { JournalRing } from 'tram-multicast/internal/journal/ring.js';
export { isLeftBehind } from 'tram-multicast/internal/protocol/data-path/delivery.js';
export { JournalStage } from '../journal-stage.js';
export { runSeed } from '../outcome.js';
export { simulate } from '../simulate.js';
export { Stage } from '../stage.js';
