/**
 * A process that `namespaces.test.ts` starts: it makes machines whose names begin with the given prefix, and starts a process
 * on one of them. On request it exits without closing them.
 */
import { Machines } from '../../chaos/namespaces.mjs';

const machines = Machines.create(2, { prefix: process.argv[2] });
const { pid } = machines.all[0].spawn('sleep', ['1000'], { stdio: 'ignore' });
process.once('message', () => process.exit());
process.send({ namespaces: machines.namespaces, pid });
