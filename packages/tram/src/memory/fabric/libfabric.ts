/**
 * The functions of libfabric. It exports a few; all others are entries of function tables to which its objects point. An
 * entry is decoded once and cached. Called by the other files of this folder.
 *
 * The library is loaded with the first use, once in every thread. Functions return 0 or a count, or a negative error
 * code.
 */
import { constants } from 'node:os';
import { TramError, type TramErrorOptions } from '../../errors.js';
import { type Koffi, loadKoffi, type NativeFunction, type NativeLibrary } from '../koffi.js';
import { FIELDS } from './binary-interface.js';
import { Block } from './block.js';

/** The interface version that we ask for: 1.17, which is also the oldest tested. */
const INTERFACE_VERSION = (1 << 16) | 17;

const POINTER = 'uintptr_t';

type Structure = keyof typeof FIELDS;

interface Slot {
  /** Offset of the pointer to the table, in an object. */
  readonly table: number;
  /** Offset of the pointer to the function, in the table. */
  readonly entry: number;
  readonly result: string;
  readonly parameters: readonly string[];
}

function slot<O extends Structure, T extends Structure>(
  [object, table]: readonly [O, keyof (typeof FIELDS)[O]],
  [operations, entry]: readonly [T, keyof (typeof FIELDS)[T]],
  parameters: readonly string[],
): Slot {
  return {
    table: FIELDS[object][table] as number,
    entry: FIELDS[operations][entry] as number,
    // Some return `int` and some `ssize_t`, but no value needs more than 32 bits.
    result: 'int',
    parameters: [POINTER, ...parameters],
  };
}

const THREE_POINTERS = [POINTER, POINTER, POINTER];

/** The first parameter of each is the object. */
const SLOTS = {
  close: slot(['fid', 'ops'], ['fi_ops', 'close'], []),
  bind: slot(['fid', 'ops'], ['fi_ops', 'bind'], [POINTER, 'uint64_t']),
  control: slot(['fid', 'ops'], ['fi_ops', 'control'], ['int', POINTER]),
  openDomain: slot(['fid_fabric', 'ops'], ['fi_ops_fabric', 'domain'], THREE_POINTERS),
  openPassiveEndpoint: slot(['fid_fabric', 'ops'], ['fi_ops_fabric', 'passive_ep'], THREE_POINTERS),
  openEventQueue: slot(['fid_fabric', 'ops'], ['fi_ops_fabric', 'eq_open'], THREE_POINTERS),
  tryWait: slot(['fid_fabric', 'ops'], ['fi_ops_fabric', 'trywait'], [POINTER, 'int']),
  openCompletionQueue: slot(['fid_domain', 'ops'], ['fi_ops_domain', 'cq_open'], THREE_POINTERS),
  openEndpoint: slot(['fid_domain', 'ops'], ['fi_ops_domain', 'endpoint'], THREE_POINTERS),
  register: slot(
    ['fid_domain', 'mr'],
    ['fi_ops_mr', 'reg'],
    [POINTER, 'size_t', 'uint64_t', 'uint64_t', 'uint64_t', 'uint64_t', POINTER, POINTER],
  ),
  getName: slot(['fid_pep', 'cm'], ['fi_ops_cm', 'getname'], [POINTER, POINTER]),
  listen: slot(['fid_pep', 'cm'], ['fi_ops_cm', 'listen'], []),
  reject: slot(['fid_pep', 'cm'], ['fi_ops_cm', 'reject'], [POINTER, POINTER, 'size_t']),
  connect: slot(['fid_ep', 'cm'], ['fi_ops_cm', 'connect'], [POINTER, POINTER, 'size_t']),
  accept: slot(['fid_ep', 'cm'], ['fi_ops_cm', 'accept'], [POINTER, 'size_t']),
  read: slot(['fid_ep', 'rma'], ['fi_ops_rma', 'readmsg'], [POINTER, 'uint64_t']),
  write: slot(['fid_ep', 'rma'], ['fi_ops_rma', 'writemsg'], [POINTER, 'uint64_t']),
  readCompletions: slot(['fid_cq', 'ops'], ['fi_ops_cq', 'read'], [POINTER, 'size_t']),
  readCompletionError: slot(['fid_cq', 'ops'], ['fi_ops_cq', 'readerr'], [POINTER, 'uint64_t']),
  readEvent: slot(
    ['fid_eq', 'ops'],
    ['fi_ops_eq', 'read'],
    [POINTER, POINTER, 'size_t', 'uint64_t'],
  ),
  readEventError: slot(['fid_eq', 'ops'], ['fi_ops_eq', 'readerr'], [POINTER, 'uint64_t']),
} as const;

export type Operation = keyof typeof SLOTS;

let loaded: Libfabric | undefined;

/** Loads the library with the first call in this thread. */
export function libfabric(): Libfabric {
  loaded ??= new Libfabric(loadKoffi("memory: 'machines'"));
  return loaded;
}

export class Libfabric {
  /** The C library, as part of the process. */
  readonly system: NativeLibrary;
  /** Eight bytes for what a function returns through a pointer. To be read before the next call. */
  readonly result: Block;
  readonly duplicateInfo: NativeFunction;
  readonly freeInfo: NativeFunction;
  private readonly getInfo: NativeFunction;
  private readonly openFabric: NativeFunction;
  private readonly duplicateString: NativeFunction;
  private readonly describe: (code: number) => string;
  private readonly prototypes = new Map<Operation, unknown>();
  private readonly functions = new Map<number, NativeFunction>();

  constructor(readonly koffi: Koffi) {
    this.system = koffi.load(null);
    quietInfinipath(this.system);
    const library = loadLibrary(koffi);
    this.result = new Block(koffi, 8);
    this.getInfo = library.func('fi_getinfo', 'int', [
      'uint32_t',
      'str',
      'str',
      'uint64_t',
      POINTER,
      POINTER,
    ]);
    this.duplicateInfo = library.func('fi_dupinfo', POINTER, [POINTER]);
    this.freeInfo = library.func('fi_freeinfo', 'void', [POINTER]);
    this.openFabric = library.func('fi_fabric', 'int', [POINTER, POINTER, POINTER]);
    const describe: unknown = library.func('fi_strerror', 'str', ['int']);
    this.describe = describe as (code: number) => string;
    this.duplicateString = this.system.func('strdup', POINTER, ['str']);
  }

  /** Find the `fi_info` for `hints`: its address is in `result`. @returns an error code, or 0 */
  findInfo(node: string, flags: number, hints: number): number {
    return this.getInfo(INTERFACE_VERSION, node, null, flags, hints, this.result.address);
  }

  /** A C string that libfabric frees. */
  newString(text: string): number {
    return this.duplicateString(text);
  }

  /** The function of `object` for an operation. Objects of one provider and kind share it. */
  operation(name: Operation, object: number): NativeFunction {
    const { table, entry, result, parameters } = SLOTS[name];
    const address = this.pointer(this.pointer(object + table) + entry);
    let operation = this.functions.get(address);
    if (operation === undefined) {
      let prototype = this.prototypes.get(name);
      if (prototype === undefined) {
        prototype = this.koffi.proto(result, parameters);
        this.prototypes.set(name, prototype);
      }
      operation = this.koffi.decode(address, prototype) as NativeFunction;
      this.functions.set(address, operation);
    }
    return operation;
  }

  makeFabric(info: number): number {
    const { result } = this;
    const attributes = this.pointer(info + FIELDS.fi_info.fabric_attr);
    this.check(this.openFabric(attributes, result.address, 0), "libfabric can't open a fabric");
    return result.getWide(0);
  }

  /**
   * Open an object that belongs to `owner`.
   *
   * @param attributes  address of a structure
   * @param errorOf  makes the error to throw if it can't be opened
   */
  open(
    name: Operation,
    owner: number,
    attributes: number,
    errorOf = (code: number) => this.error(`libfabric can't ${name}`, code),
  ): number {
    const { result } = this;
    const code = this.operation(name, owner)(owner, attributes, result.address, 0);
    if (code < 0) throw errorOf(code);
    return result.getWide(0);
  }

  bind(object: number, queue: number, flags: number): void {
    this.check(this.operation('bind', object)(object, queue, flags), "libfabric can't bind");
  }

  close(object: number): void {
    this.check(this.operation('close', object)(object), "libfabric can't close");
  }

  pointer(address: number): number {
    return this.koffi.decode(address, POINTER) as number;
  }

  word(address: number): number {
    return this.koffi.decode(address, 'uint32_t') as number;
  }

  setWord(address: number, value: number): void {
    this.koffi.encode(address, 'uint32_t', value);
  }

  setWide(address: number, value: number): void {
    this.koffi.encode(address, 'uint64_t', value);
  }

  /** @param what  could not be done, for the message  @returns `code`  @throws if `code` is an error */
  check(code: number, what: string): number {
    if (code < 0) throw this.error(what, code);
    return code;
  }

  error(what: string, code: number, options: TramErrorOptions = {}): TramError {
    return new TramError('TRAM_SYSTEM', `${what}: ${this.reason(code)}.`, options);
  }

  /** A description of an error code. */
  reason(code: number): string {
    // The most frequent one, by far: a host that does not run.
    if (Math.abs(code) === constants.errno.ECONNREFUSED)
      return 'connection refused, no host runs there';
    return `${this.describe(Math.abs(code))} (libfabric error ${Math.abs(code)})`;
  }
}

/**
 * Debian's libfabric loads a library that replaces Node's signal handlers unless this variable is set. It must be set in
 * the environment of the process: a worker's `process.env` is a copy that libraries do not see.
 */
function quietInfinipath(system: NativeLibrary): void {
  const setEnvironment = system.func('setenv', 'int', ['str', 'str', 'int']);
  setEnvironment('IPATH_NO_BACKTRACE', '1', 1);
}

function loadLibrary(koffi: Koffi): NativeLibrary {
  try {
    return koffi.load('libfabric.so.1');
  } catch (cause) {
    throw new TramError(
      'TRAM_FABRIC_MISSING',
      "memory: 'machines' needs the library libfabric, and it can not be loaded.",
      { hint: 'apt-get install libfabric1', cause },
    );
  }
}
