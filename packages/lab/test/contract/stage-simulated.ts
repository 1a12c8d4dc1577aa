/** A stage in one thread: a seed decides which player steps next and when writes land. */
import type { ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import { Random } from '../../src/sim/random.js';
import {
  SimulatedFabric,
  type SimulatedMemory,
  type Weather,
} from '../../src/sim/simulated-memory.js';
import { DONE, newPlayer, newPuppet, type Player, type Puppet } from './play.mjs';
import type { Actor, Playing, Remote, Stage } from './stage.js';

const PROCESSES = 3;
const SIMULATED_WORDS = 1 << 15;
const STEPS_AT_A_TIME = 200;
const STEPS_MAX = 20_000_000;

interface SimulatedPlaying {
  readonly player: Player;
  isDone: boolean;
}

export class SimulatedStage implements Stage {
  readonly random: Random;
  private readonly fabric: SimulatedFabric;
  private readonly memories: SimulatedMemory[] = [];
  private readonly incarnations: number[] = new Array(PROCESSES).fill(0);
  private readonly playing = new Map<ParticipantId, SimulatedPlaying>();
  private readonly paused = new Set<ParticipantId>();

  /** @param isOnMachines  each participant is on a machine of its own, and out of reach while it is down */
  constructor(
    seed: number,
    private readonly isOnMachines = false,
  ) {
    this.random = new Random(seed);
    const weather: Weather = {
      delayUs: this.random.between(1, 5),
      jitterUs: this.random.below(20),
      tornPercent: this.random.pick([0, 50, 100]),
      lateCompletionPercent: this.random.pick([0, 30]),
    };
    this.fabric = new SimulatedFabric(PROCESSES, weather, this.random);
    for (let participant = 0; participant < PROCESSES; participant++) {
      this.memories.push(this.fabric.start(participant, SIMULATED_WORDS));
    }
  }

  private beginIncarnation(participant: ParticipantId, resumes: boolean): SimulatedMemory {
    if (++this.incarnations[participant] === 1) return this.memories[participant];
    const memory = resumes ? this.fabric.resume(participant) : this.fabric.restart(participant);
    this.memories[participant] = memory;
    return memory;
  }

  async begin(participant: ParticipantId, resumes = false): Promise<Actor> {
    const memory = this.beginIncarnation(participant, resumes);
    return {
      incarnation: this.incarnations[participant],
      puppet: this.puppetOf(memory),
      play: (name, options) => this.play(memory, name, options),
      kill: async () => {
        this.playing.delete(participant);
        if (this.isOnMachines) this.fabric.killOnOwnMachine(participant);
        else this.fabric.kill(participant);
      },
      pause: async () => {
        memory.stallAfter(this.random.below(3));
        this.paused.add(participant);
        // Run until the pause takes effect.
        this.run(STEPS_AT_A_TIME);
      },
      goOn: () => {
        this.paused.delete(participant);
        memory.resume();
      },
    };
  }

  /** Everything that was posted has landed before a puppet reads. */
  private puppetOf(memory: SimulatedMemory): Remote<Puppet> {
    const puppet = newPuppet(memory) as unknown as Record<string, (...args: unknown[]) => unknown>;
    const remote: Record<string, (...args: unknown[]) => Promise<unknown>> = {};
    const looks = ['own', 'isEmpty', 'completions', 'fetched'];
    for (const [name, act] of Object.entries(puppet)) {
      remote[name] = async (...args) => {
        if (looks.includes(name)) this.settle();
        return act(...args);
      };
    }
    return remote as unknown as Remote<Puppet>;
  }

  private settle(): void {
    while (this.fabric.nextUs() < Number.POSITIVE_INFINITY) this.fabric.runNext();
  }

  private play(memory: SimulatedMemory, name: string, options: object): Playing {
    const permissionOf = (peer: ParticipantId) => this.memories[peer].permitted();
    const player = newPlayer(name, memory, options, { permissionOf });
    const playing: SimulatedPlaying = { player, isDone: false };
    this.playing.set(memory.self, playing);
    return {
      result: async <T>() => {
        for (let steps = 0; !playing.isDone; steps += STEPS_AT_A_TIME) {
          if (steps > STEPS_MAX)
            throw new Error(`${name} did not finish within ${STEPS_MAX} steps`);
          this.run(STEPS_AT_A_TIME);
        }
        return player.result() as T;
      },
    };
  }

  /** Random steps: a player steps, or a write lands. */
  private run(steps: number): void {
    for (let i = 0; i < steps; i++) {
      const ready = [...this.playing.keys()].filter((participant) => !this.isStopped(participant));
      const drawn = this.random.below(ready.length + 1);
      if (drawn < ready.length) this.step(ready[drawn]);
      else if (this.fabric.nextUs() < Number.POSITIVE_INFINITY) this.fabric.runNext();
    }
  }

  private isStopped(participant: ParticipantId): boolean {
    return this.paused.has(participant) && this.memories[participant].isStalled;
  }

  private step(participant: ParticipantId): void {
    const playing = this.playing.get(participant)!;
    if (playing.player.step() !== DONE) return;
    playing.isDone = true;
    this.playing.delete(participant);
  }

  async aWhile(): Promise<void> {
    this.run(this.random.below(2000));
  }

  async until(participant: ParticipantId, at: number, value: number): Promise<void> {
    while (this.word(participant, at) < value) this.run(1);
  }

  word(participant: ParticipantId, at: number): number {
    return this.memories[participant].own[at];
  }

  async close(): Promise<void> {}
}
