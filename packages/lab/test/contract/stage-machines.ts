/**
 * A stage whose actors are hosts of their own: each is a process with its own arena, connected to the others by libfabric over
 * the loopback. The suite also maps the arenas, for checks. If the actors are on one machine, they map each other's arenas too,
 * as hosts on several threads do.
 */
import type { ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import type { SocketAddress } from 'tram-multicast/internal/memory/fabric/socket-address.js';
import {
  type ArenaFile,
  arenaPath,
  createArenaFile,
  removeArenaFile,
} from 'tram-multicast/internal/memory/processes/arena-file.js';
import { freePorts } from '../../src/bench/systems/ports.js';
import type { Actor } from './stage.js';
import {
  forkCounterpart,
  type Line,
  type RealActor,
  RealStage,
  SHAPE,
  writeArenaHeader,
} from './stage-real.js';

const ADDRESS = '127.0.0.1';
/** How long a host may be silent: longer than any delay on a busy machine. */
const PATIENCE_US = 30_000_000;

export class MachinesStage extends RealStage {
  private static count = 0;
  private readonly arenas: readonly ArenaFile[];
  /** The latest incarnation of each participant. */
  private readonly present = new Map<ParticipantId, RealActor>();

  private constructor(
    seed: number,
    private readonly addresses: readonly SocketAddress[],
    private readonly areOnOneMachine: boolean,
    private readonly patienceUs: number,
  ) {
    super(seed);
    const stage = MachinesStage.count++;
    this.arenas = addresses.map((_, host) => {
      const path = arenaPath(`contract-${process.pid}-${stage}-host-${host}`);
      const arena = createArenaFile(path, this.map.words);
      writeArenaHeader(arena.words);
      return arena;
    });
  }

  static async open(
    seed: number,
    areOnOneMachine: boolean,
    patienceUs = PATIENCE_US,
  ): Promise<MachinesStage> {
    const ports = await freePorts(SHAPE.hosts);
    const addresses = ports.map((port) => ({ host: ADDRESS, port }));
    return new MachinesStage(seed, addresses, areOnOneMachine, patienceUs);
  }

  override async begin(participant: ParticipantId, resumes = false): Promise<Actor> {
    const actor = this.start(participant, resumes);
    this.present.set(participant, actor);
    return actor.begun();
  }

  protected call(id: ParticipantId, resumes: boolean): Line {
    // An actor begins once it is connected to all running ones.
    const meets = [...this.present.keys()].filter(
      (participant) => participant !== id && this.isThere(participant),
    );
    const line = forkCounterpart({
      mode: 'machines',
      paths: this.arenas.map(({ path }) => path),
      addresses: this.addresses,
      patienceUs: this.patienceUs,
      areOnOneMachine: this.areOnOneMachine,
      shape: SHAPE,
      id,
      resumes,
      meets: meets.map((participant) => this.map.hostOf(participant)),
    });
    // While an actor is paused, waiting for it is cut short.
    const send = (message: object) => line.send({ ...message, isHeldUp: this.isAnyPaused });
    return { ...line, send };
  }

  private isThere(participant: ParticipantId): boolean {
    const actor = this.present.get(participant);
    return actor !== undefined && actor.ended === undefined && !actor.isPaused;
  }

  private get isAnyPaused(): boolean {
    return this.actors.some(({ isPaused, ended }) => isPaused && ended === undefined);
  }

  word(participant: ParticipantId, at: number): number {
    const { words } = this.arenas[this.map.hostOf(participant)];
    return Atomics.load(words, this.map.region(participant) + at);
  }

  override async close(): Promise<void> {
    await super.close();
    for (const arena of this.arenas) {
      arena.close();
      removeArenaFile(arena.path);
    }
  }
}
