/** The colour theme: that of the system, or the one that the user has chosen. */
import { signal } from '@preact/signals';

type Theme = 'system' | 'light' | 'dark';

const NEXT: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };

const theme = signal<Theme>('system');

/** Take the next theme. */
export function changeTheme(): void {
  theme.value = NEXT[theme.value];
  const root = document.documentElement;
  if (theme.value === 'system') root.removeAttribute('data-theme');
  else root.setAttribute('data-theme', theme.value);
}

export function ThemeButton() {
  return (
    <button type="button" onClick={changeTheme} title="Change the colour theme">
      Theme: {theme.value}
    </button>
  );
}
