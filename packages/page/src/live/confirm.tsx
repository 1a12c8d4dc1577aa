/** What an operator may do with a host or a replica. Each action is confirmed in a dialog, which tells how it ended. */
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ControlRequest } from 'tram-multicast/internal/page/wire.js';
import { ask } from './link.js';

export interface Action {
  readonly request: ControlRequest;
  /** `Crash host 1` */
  readonly title: string;
  readonly explanation: string;
}

type Step =
  | { readonly kind: 'asking' | 'running' | 'done' }
  | { readonly kind: 'failed'; readonly why: string };

const current = signal<Action | undefined>(undefined);
const step = signal<Step>({ kind: 'asking' });

export function confirm(action: Action): void {
  step.value = { kind: 'asking' };
  current.value = action;
}

async function run(action: Action): Promise<void> {
  step.value = { kind: 'running' };
  try {
    await ask(action.request);
    step.value = { kind: 'done' };
  } catch (error) {
    step.value = { kind: 'failed', why: error instanceof Error ? error.message : String(error) };
  }
}

function close(): void {
  current.value = undefined;
}

export function ConfirmDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const action = current.value;
  // At once: who presses two keys in a row is faster than the next frame.
  useLayoutEffect(() => {
    if (action === undefined) dialog.current?.close();
    else if (dialog.current?.open === false) dialog.current.showModal();
  }, [action]);
  // The browser tells later that the dialog was closed. By then the next one may be open.
  const closed = (): void => {
    if (dialog.current?.open === false) close();
  };
  const { kind } = step.value;
  return (
    <dialog ref={dialog} aria-labelledby="confirm-title" onCancel={close} onClose={closed}>
      {action === undefined ? null : (
        <>
          <h2 id="confirm-title">{action.title}?</h2>
          <p>{action.explanation}</p>
          <p class="outcome" role="status">
            {textOf(step.value)}
          </p>
          <div class="actions">
            {kind === 'done' || kind === 'failed' ? null : (
              <button
                type="button"
                class="primary"
                disabled={kind === 'running'}
                onClick={() => run(action)}
              >
                {action.title}
              </button>
            )}
            <button type="button" onClick={close}>
              {kind === 'asking' ? 'Cancel' : 'Close'}
            </button>
          </div>
        </>
      )}
    </dialog>
  );
}

function textOf(now: Step): string {
  switch (now.kind) {
    case 'asking':
      return '';
    case 'running':
      return 'Under way …';
    case 'done':
      return 'Done.';
    case 'failed':
      return `Failed: ${now.why}`;
  }
}
