/** The story of the run so far, line by line. A click goes to the moment of a line. */
import { useEffect, useRef } from 'preact/hooks';
import { player, stopAnd } from './state.js';
import { timeText } from './words.js';

/** Earlier lines are left out. */
const LINES_MAX = 300;

export function Story() {
  const story = player.story.value;
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    list.current!.scrollTop = list.current!.scrollHeight;
  }, [story]);
  const hidden = Math.max(0, story.length - LINES_MAX);
  return (
    <section class="panel story" aria-labelledby="story-title">
      <h2 id="story-title">Story</h2>
      <ol ref={list}>
        {hidden > 0 && <li class="faint">{hidden} earlier lines</li>}
        {story.length === 0 && <li class="faint">Nothing has happened yet.</li>}
        {story.slice(hidden).map(({ events, timeUs, text }, i) => (
          <li key={hidden + i}>
            <button type="button" class="line" onClick={() => stopAnd(() => player.goTo(events))}>
              <span class="faint time">{timeText(timeUs)}</span>
              <span>{text}</span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
