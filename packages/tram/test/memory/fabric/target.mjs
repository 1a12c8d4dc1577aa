// Serves its memory to every peer until it is killed. Its first line of output tells port and region.
import { Block } from '../../../dist/memory/fabric/block.js';
import { Fabric } from '../../../dist/memory/fabric/fabric.js';
import { NO_OP_HANDLER } from '../../../dist/memory/fabric/handler.js';
import { libfabric } from '../../../dist/memory/fabric/libfabric.js';
import { native } from '../../../dist/memory/processes/native.js';

const BYTES = 1 << 21;
const POLLS = 1000;

const fabric = Fabric.open({ address: '127.0.0.1' });
const memory = new Block(libfabric().koffi, BYTES);
const { base, keyLow, keyHigh } = fabric.register(memory.address, BYTES, 'remote');
console.log(JSON.stringify({ port: fabric.listen(0), region: { base, keyLow, keyHigh } }));

const handler = { ...NO_OP_HANDLER, requested: (request) => request.accept(new Uint8Array(0)) };

process.stdin.on('end', () => process.exit()).resume();

function serve() {
  for (let i = 0; i < POLLS; i++) {
    fabric.poll(handler);
    // The peer may need this core.
    native().yieldProcessor();
  }
  setImmediate(serve);
}
serve();
