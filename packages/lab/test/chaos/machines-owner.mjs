/**
 * Makes machines, for tests, with names that begin as it is told, and starts a process on one of them. Then it exits
 * without closing them when it is told to, unless it is killed before.
 */
import { Machines } from '../../chaos/namespaces.mjs';

const machines = Machines.create(2, { prefix: process.argv[2] });
const { pid } = machines.all[0].spawn('sleep', ['1000'], { stdio: 'ignore' });
process.once('message', () => process.exit());
process.send({ namespaces: machines.namespaces, pid });
