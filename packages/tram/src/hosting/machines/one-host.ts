/** Runs one host of a cluster across machines, from its start to its end. A host that has given up its memory begins anew. */
import { type HostHealth, healthOf } from './health.js';
import { Machine, type MachineSettings } from './machine.js';
import type { HostRequest } from './requests.js';

export class OneHost {
  private machine: Machine;
  private isStopped = false;
  /** What the machine was asked for, if not this host. */
  private request: HostRequest | undefined;

  /** @throws what keeps it from starting, such as TRAM_HOST_RUNNING */
  constructor(private readonly settings: MachineSettings) {
    this.machine = this.open();
  }

  private open(): Machine {
    const machine = Machine.open(this.settings);
    this.settings.log('info', `listens at ${machine.address}`);
    return machine;
  }

  /** @returns what another machine has asked for, if that is why the host has ended; never `recover` */
  async run(): Promise<HostRequest | undefined> {
    for (;;) {
      const request = await this.runOnce();
      if (request !== 'recover') return request;
      // This host has given up its memory. The others of its machine have not.
      if (this.isStopped) return this.request;
      this.machine = this.open();
    }
  }

  private async runOnce(): Promise<HostRequest | undefined> {
    const { machine } = this;
    try {
      if (!this.isStopped) await machine.start();
      await machine.run();
    } finally {
      machine.close();
    }
    return machine.request;
  }

  /** @param request  what another host of this machine was asked for, if that is why */
  stop(request?: HostRequest): void {
    this.isStopped = true;
    this.request ??= request;
    if (this.request === undefined) this.machine.stop();
    else this.machine.endFor(this.request);
  }

  get health(): HostHealth {
    const { context, host, lostGroups, waitsFor } = this.machine;
    return healthOf({ context, host, lostGroups, waitsFor });
  }
}
