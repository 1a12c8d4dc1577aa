/** The dialogs: tours, holes, a new run, the link, and the keys. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Inline } from './guide.js';
import { caughtRun, HOLES, judgedRun } from './holes.js';
import { ACTIONS, type Action, keyName } from './keys.js';
import { type Dialog, dialog, openCluster, openHole, openSeed, openTour, player } from './state.js';
import { TOURS } from './tours.js';

const TITLES: Readonly<Record<Dialog, string>> = {
  tours: 'Tours',
  holes: 'Holes of the paper',
  setup: 'A new run',
  link: 'The link to this moment',
  keys: 'Keys',
};

export function Dialogs() {
  const which = dialog.value;
  return which === undefined ? null : <DialogBox key={which} which={which} />;
}

function close(): void {
  dialog.value = undefined;
}

function DialogBox({ which }: { which: Dialog }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current!.showModal(), []);
  return (
    <dialog ref={box} aria-labelledby="dialog-title" onCancel={close}>
      <header>
        <h2 id="dialog-title">{TITLES[which]}</h2>
        <button type="button" onClick={close}>
          Close{' '}
          <span class="key" aria-hidden="true">
            Esc
          </span>
        </button>
      </header>
      {which === 'tours' && <Tours />}
      {which === 'holes' && <Holes />}
      {which === 'setup' && <Setup />}
      {which === 'link' && <LinkText />}
      {which === 'keys' && <Keys />}
    </dialog>
  );
}

function Tours() {
  return (
    <ul class="choices">
      {TOURS.map(({ name, title, stops }) => (
        <li key={name}>
          <button
            type="button"
            onClick={() => {
              close();
              openTour(name);
            }}
          >
            <strong>{title}</strong>
            <span class="faint">{stops.length} stops</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function Holes() {
  return (
    <>
      <p>
        The pseudo-code of the paper has errors, which we call holes, and our own design could have
        had others. Choose one: the page puts it back into the protocol, and loads a run that it
        breaks.
      </p>
      <ul class="choices">
        {HOLES.map((hole) => (
          <li key={hole.name}>
            <button
              type="button"
              disabled={hole.run === null}
              onClick={() => {
                close();
                openHole(hole, judgedRun(hole) ?? caughtRun(hole));
              }}
            >
              <strong>{hole.name}</strong>
              <span>
                <Inline text={hole.title} />
                {hole.run === null && ' (impossible by design)'}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

const TREES: readonly (readonly [title: string, tree: string])[] = [
  ['one group', '-1'],
  ['a parent and a child', '-1,0'],
  ['a parent and two children', '-1,0,0'],
  ['a chain of three', '-1,0,1'],
  ['a chain of two, and a child', '-1,0,0,1'],
  ['seven groups in three levels', '-1,0,0,1,1,2,2'],
];

function Setup() {
  const [tree, setTree] = useState('-1,0,0');
  const [replicas, setReplicas] = useState('3');
  const [clients, setClients] = useState('2');
  const [order, setOrder] = useState('multicast');
  const [seed, setSeed] = useState('7');
  const begin = async (opens: Promise<boolean>): Promise<void> => {
    if (await opens) close();
  };
  const cluster = `tree=${tree} groups=${tree.split(',').length} replicas=${replicas} clients=${clients} order=${order}`;
  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          begin(openCluster(cluster));
        }}
      >
        <h3>A cluster of your own</h3>
        <div class="fields">
          <Choice title="Tree" value={tree} options={TREES.map(([a, b]) => [b, a])} set={setTree} />
          <Choice
            title="Members of each group"
            value={replicas}
            options={same('1', '3', '5', '7')}
            set={setReplicas}
          />
          <Choice
            title="Clients"
            value={clients}
            options={same('1', '2', '3', '4')}
            set={setClients}
          />
          <Choice
            title="Order"
            value={order}
            options={same('multicast', 'strict')}
            set={setOrder}
          />
        </div>
        <button type="submit" class="primary">
          Start the cluster
        </button>
      </form>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          begin(openSeed(Number(seed)));
        }}
      >
        <h3>A run of the simulator, drawn from a seed</h3>
        <p class="faint">
          The same run as <code>tram-lab sim --seed {seed || '…'}</code>: tree, messages and faults
          are drawn.
        </p>
        <div class="fields">
          <label>
            Seed
            <input
              type="number"
              min="0"
              max={2 ** 52 - 1}
              required
              value={seed}
              onInput={({ currentTarget }) => setSeed(currentTarget.value)}
            />
          </label>
        </div>
        <button type="submit" class="primary">
          Load the run
        </button>
      </form>
    </>
  );
}

type Options = readonly (readonly [value: string, title: string])[];

function same(...values: string[]): Options {
  return values.map((value) => [value, value]);
}

function Choice(props: {
  title: string;
  value: string;
  options: Options;
  set: (value: string) => void;
}) {
  const { title, value, options, set } = props;
  return (
    <label>
      {title}
      <select value={value} onChange={({ currentTarget }) => set(currentTarget.value)}>
        {options.map(([each, words]) => (
          <option key={each} value={each}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

function LinkText() {
  const [isCopied, setCopied] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const address = `${location.href.split('#')[0]}#${player.fragment.value}`;
  const copy = async (): Promise<void> => {
    field.current!.select();
    await navigator.clipboard.writeText(address).catch(() => undefined);
    setCopied(true);
  };
  return (
    <>
      <p>
        It has the tree, the seed and everything that you have done, so it shows the same run on
        every machine.
      </p>
      <textarea ref={field} readOnly rows={5} aria-label="The link" value={address} />
      <div class="bar">
        <button type="button" class="primary" onClick={copy}>
          {isCopied ? 'Selected and copied' : 'Copy'}
        </button>
      </div>
    </>
  );
}

function Keys() {
  const sections = [...new Set(Object.values(ACTIONS).map(({ section }) => section))];
  return (
    <div class="key-lists">
      {sections.map((section) => (
        <section key={section}>
          <h3>{section}</h3>
          <dl>
            {Object.values<Action>(ACTIONS)
              .filter((action) => action.section === section)
              .map((action) => (
                <div key={action.key}>
                  <dt>
                    <kbd>{keyName(action)}</kbd>
                  </dt>
                  <dd>{action.title}</dd>
                </div>
              ))}
            {section === 'Choose' && (
              <div>
                <dt>
                  <kbd>0</kbd>–<kbd>9</kbd>
                </dt>
                <dd>Choose a group as destination, or not</dd>
              </div>
            )}
          </dl>
        </section>
      ))}
    </div>
  );
}
