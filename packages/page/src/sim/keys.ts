/** Every action of the page and its key. Buttons show their keys, and the list of keys is made from this table. */
import { changeTheme } from '../shared/theme.js';
import {
  askJudge,
  changePace,
  dialog,
  nextClient,
  nextOther,
  nextStop,
  onLink,
  player,
  previousStop,
  rivals,
  selectNext,
  send,
  showsTable,
  stopAnd,
  strike,
  toggleDestination,
  togglePlaying,
  toggleTearing,
} from './state.js';

export interface Action {
  readonly title: string;
  /** As `KeyboardEvent.key` has it. */
  readonly key: string;
  readonly section: 'Time' | 'Choose' | 'Do' | 'Break' | 'Show';
  readonly act: () => unknown;
}

const time = (act: () => unknown) => () => stopAnd(act);

export const ACTIONS = {
  step: a(
    'Time',
    'ArrowRight',
    'Step: to the next visible change',
    time(() => player.step()),
  ),
  back: a(
    'Time',
    'ArrowLeft',
    'Step back',
    time(() => player.stepBack()),
  ),
  line: a(
    'Time',
    ']',
    'To the next line of the story',
    time(() => player.line()),
  ),
  lineBack: a(
    'Time',
    '[',
    'Back to the line before',
    time(() => player.lineBack()),
  ),
  event: a(
    'Time',
    '.',
    'One event',
    time(() => player.move(1)),
  ),
  eventBack: a(
    'Time',
    ',',
    'One event back',
    time(() => player.move(-1)),
  ),
  play: a('Time', ' ', 'Play or stop', togglePlaying),
  faster: a('Time', '+', 'Play faster', () => changePace(1)),
  slower: a('Time', '-', 'Play slower', () => changePace(-1)),
  start: a(
    'Time',
    'Home',
    'To the beginning',
    time(() => player.goTo(0)),
  ),
  end: a(
    'Time',
    'End',
    'To the end, or until it is quiet',
    time(() => player.untilQuiet()),
  ),
  undo: a(
    'Time',
    'u',
    'Undo what you did last',
    time(() => player.undo()),
  ),
  nextStop: a('Time', 'n', 'Next stop of a tour', nextStop),
  previousStop: a('Time', 'b', 'Stop before', previousStop),
  nextReplica: a('Choose', 'j', 'Inspect the next replica', () => selectNext(1)),
  previousReplica: a('Choose', 'k', 'Inspect the replica before', () => selectNext(-1)),
  nextClient: a('Choose', 'i', 'The next client sends', nextClient),
  nextOther: a('Choose', 'o', 'The next other end of links', nextOther),
  send: a('Do', 'm', 'Multicast to the chosen groups', send),
  campaign: a('Do', 'g', 'The replica campaigns', () => strike('campaign')),
  rivals: a('Do', 'G', 'Two candidates: it and the next member', rivals),
  crash: a('Break', 'c', 'Crash: its memory is lost', () => strike('crash')),
  kill: a('Break', 'x', 'Kill: its memory stays', () => strike('kill')),
  pause: a('Break', 'p', 'Pause', () => strike('pause')),
  resume: a('Break', 'r', 'Resume, or come back to its memory', () => strike('resume')),
  restart: a('Break', 'R', 'Restart with empty memory', () => strike('restart')),
  cut: a('Break', 'd', 'Cut the link to the other end', () => onLink('cut')),
  slow: a('Break', 's', 'Slow the link down', () => onLink('slow')),
  mend: a('Break', 'e', 'Mend the link', () => onLink('mend')),
  tear: a('Break', 'w', 'Tear all writes, or no longer', toggleTearing),
  judge: a('Show', 'v', 'Ask the judge', askJudge),
  table: a('Show', 't', 'Tables instead of the picture, or the picture', () => {
    showsTable.value = !showsTable.value;
  }),
  tours: a('Show', 'T', 'Tours', () => open('tours')),
  holes: a('Show', 'H', 'Holes of the paper', () => open('holes')),
  setup: a('Show', 'N', 'A new run', () => open('setup')),
  link: a('Show', 'l', 'The link to this moment', () => open('link')),
  theme: a('Show', 'D', 'Change the colour theme', changeTheme),
  keys: a('Show', '?', 'This list', () => open('keys')),
} satisfies Record<string, Action>;

function a(section: Action['section'], key: string, title: string, act: () => unknown): Action {
  return { section, key, title, act };
}

function open(which: NonNullable<typeof dialog.value>): void {
  dialog.value = which;
}

const NAMES: Readonly<Record<string, string>> = {
  ArrowRight: '→',
  ArrowLeft: '←',
  ' ': 'Space',
};

export function keyName({ key }: Action): string {
  return NAMES[key] ?? key;
}

/** What has the focus uses these itself. */
const PRESSES_BUTTONS = [' ', 'Enter'];
const TAKES_KEYS = 'input, select, textarea, dialog';

export function handleKeys(): void {
  document.addEventListener('keydown', (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || !(target instanceof Element)) return;
    if (target.closest(TAKES_KEYS) !== null) return;
    if (PRESSES_BUTTONS.includes(key) && target.closest('button, summary') !== null) return;
    if (/^\d$/.test(key)) toggleDestination(Number(key));
    else {
      const action = Object.values(ACTIONS).find((each) => each.key === key);
      if (action === undefined) return;
      action.act();
    }
    event.preventDefault();
  });
}
