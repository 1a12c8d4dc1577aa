/**
 * A service for tests that defers replies: `take BOX` waits for a letter, `put BOX TEXT` gives the letter to the message
 * that has waited longest, or replies `nobody`. `large BOX` gives too large a letter. `waiting` and `gone` list the ids of
 * the messages that wait and of those that were abandoned. `early` and `wrong` make mistakes, and so does the box `cursed`.
 */
let boxes = {};
let gone = [];

export function deliver({ payload, id }, context) {
  const [what, box, text] = new TextDecoder().decode(payload).split(' ');
  boxes[box] ??= [];
  const waiting = boxes[box];
  switch (what) {
    case 'take':
      waiting.push(id);
      return context.defer();
    case 'put':
      return encode(context.reply(waiting.shift(), encode(text)) ? 'given' : 'nobody');
    case 'large':
      return encode(String(context.reply(waiting.shift(), new Uint8Array(100_000))));
    case 'early':
      context.reply(id);
      return context.defer();
    case 'wrong':
      context.reply(waiting[0], text);
      return undefined;
    case 'waiting':
      return encode(Object.values(boxes).flat().join());
    default:
      return encode(gone.join());
  }
}

export function abandoned(id) {
  const isCursed = boxes.cursed?.includes(id);
  for (const box of Object.keys(boxes)) boxes[box] = boxes[box].filter((one) => one !== id);
  gone.push(id);
  if (isCursed) throw new Error('the box is cursed');
}

export function snapshot() {
  return encode(JSON.stringify({ boxes, gone }));
}

export function restore(snapshot) {
  ({ boxes, gone } = JSON.parse(new TextDecoder().decode(snapshot)));
}

function encode(text) {
  return new TextEncoder().encode(text);
}
