/**
 * One shard of a bank: the accounts of one group. Account a is in group a mod 4.
 *
 * A transfer between groups is *one* message to both. Each group applies its half without asking the other. Both deliver the
 * message at the same place of one order, so no audit sees one half without the other.
 *
 * What if the payer has too little? Only the payer's group knows, and the other group does not wait for it. So a transfer must
 * be unconditional. The client therefore checks the condition first, with a message to the payer's group alone: the group
 * *reserves* the amount or refuses to, and replies which. A reserved amount stays in the balance but cannot be reserved twice.
 * (If the client crashes in between, the reservation stays; the example `work-queue` shows how such claims expire.)
 */

/** @typedef {{ balance: number, reserved: number }} Account */

/**
 * @typedef {{ what: 'open', account: number, amount: number }
 *   | { what: 'reserve', account: number, amount: number }
 *   | { what: 'transfer', from: number, to: number, amount: number }
 *   | { what: 'debit', from: number, amount: number }
 *   | { what: 'credit', to: number, amount: number }
 *   | { what: 'audit' }} Command
 */

/** @type {Map<number, Account>} */
let accounts = new Map();

/** @param {import('tram-multicast').Message} message */
export function deliver({ payload }) {
  /** @type {Command} */
  const command = JSON.parse(new TextDecoder().decode(payload));
  return encode(execute(command));
}

/** @param {Command} command */
function execute(command) {
  switch (command.what) {
    case 'open':
      accounts.set(command.account, { balance: command.amount, reserved: 0 });
      return {};
    case 'reserve':
      return { isReserved: reserve(command.account, command.amount) };
    case 'transfer':
      // Both groups deliver the same message. Each has one of the accounts, or one group has both.
      debit(command.from, command.amount);
      credit(command.to, command.amount);
      return {};
    case 'debit':
      debit(command.from, command.amount);
      return {};
    case 'credit':
      credit(command.to, command.amount);
      return {};
    case 'audit':
      return audit();
  }
}

/**
 * @param {number} number
 * @param {number} amount
 */
function reserve(number, amount) {
  const account = accounts.get(number);
  if (account === undefined || account.balance - account.reserved < amount) return false;
  account.reserved += amount;
  return true;
}

/**
 * @param {number} from
 * @param {number} amount
 */
function debit(from, amount) {
  const account = accounts.get(from);
  if (account === undefined) return;
  account.balance -= amount;
  account.reserved -= amount;
}

/**
 * @param {number} to
 * @param {number} amount
 */
function credit(to, amount) {
  const account = accounts.get(to);
  if (account !== undefined) account.balance += amount;
}

function audit() {
  const balances = [...accounts.values()].map(({ balance }) => balance);
  return {
    total: balances.reduce((sum, balance) => sum + balance, 0),
    least: Math.min(...balances),
  };
}

export function snapshot() {
  return encode([...accounts]);
}

/** @param {Uint8Array} snapshot */
export function restore(snapshot) {
  accounts = new Map(JSON.parse(new TextDecoder().decode(snapshot)));
}

/** @param {unknown} value */
function encode(value) {
  return new TextEncoder().encode(JSON.stringify(value));
}
