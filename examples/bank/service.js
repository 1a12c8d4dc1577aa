/**
 * One shard of a bank: the accounts that a group keeps. Account a is in group a mod 4.
 *
 * A transfer between groups is *one* message to both. Each group applies its half without asking the other,
 * and as both deliver it at the same place of one order, nobody ever sees one half without the other.
 *
 * That leaves one question: what if the payer has too little? Only the payer's group knows, and the other one
 * does not wait for its opinion. So a transfer must not depend on it. The condition is tested before, by a
 * message to the payer's group alone: it *reserves* the amount or refuses to, and its reply says which.
 * What is reserved stays in the balance but can't be promised twice, so the transfer that follows is
 * unconditional. (If the client dies in between, the reservation stays; the example `work-queue` shows how
 * such claims run out.)
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
      // Both groups are given the same message, and each has one of the accounts (or, in one shard, both).
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
