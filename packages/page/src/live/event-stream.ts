/** Server-sent events from the body of a response. `EventSource` can't send the header that has the token. */

export interface StreamEvent {
  readonly name: string;
  readonly data: string;
}

/** Takes text as it arrives, and gives the events that are complete. */
export class EventParser {
  private rest = '';

  take(text: string): StreamEvent[] {
    const parts = (this.rest + text).split('\n\n');
    this.rest = parts.pop()!;
    return parts.map(parse);
  }
}

function parse(block: string): StreamEvent {
  let name = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) name = line.slice('event: '.length);
    if (line.startsWith('data: ')) data.push(line.slice('data: '.length));
  }
  return { name, data: data.join('\n') };
}
