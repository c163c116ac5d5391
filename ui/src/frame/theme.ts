/** Light or dark theme: the system's choice, unless the user chose one. */

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'heapr-theme';
const listeners = new Set<() => void>();
const systemDark = window.matchMedia('(prefers-color-scheme: dark)');
systemDark.addEventListener('change', () => {
  if (chosenTheme() === 'system') apply();
});

export function chosenTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system';
  }
}

export function isDark(): boolean {
  const chosen = chosenTheme();
  return chosen === 'dark' || (chosen === 'system' && systemDark.matches);
}

export function chooseTheme(theme: Theme): void {
  try {
    if (theme === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // The browser stores nothing: the choice lasts as long as the page.
  }
  document.documentElement.dataset['theme'] = theme === 'system' ? (systemDark.matches ? 'dark' : 'light') : theme;
  tell();
}

/** Sets the theme on the document; called once at the start. */
export function apply(): void {
  document.documentElement.dataset['theme'] = isDark() ? 'dark' : 'light';
  tell();
}

/** Returns a colour for pictures; to be read again after each change of the theme. */
export function themeColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** Whether the document is drawn dark. */
export function isDrawnDark(): boolean {
  return document.documentElement.dataset['theme'] === 'dark';
}

function tell(): void {
  for (const listener of [...listeners]) listener();
}
