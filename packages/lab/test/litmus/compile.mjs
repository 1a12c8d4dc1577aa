/** Runs one function of `loads.mjs` until it is optimized, for a look at its code: `node --print-opt-code … compile.mjs NAME`. */
const ROUNDS = 1_000_000;

const loads = await import('./loads.mjs');
const words = new Int32Array(new SharedArrayBuffer(0x1000));
const call = (run, value) => run(words, value);
// Many functions that are called from one place are not inlined there.
for (let i = 0; i < 1000; i++) call(new Function('words', `return ${i}`), 0);
for (let i = 0; i < ROUNDS; i++) call(loads[process.argv[2]], i);
