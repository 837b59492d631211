import { useEffect, useState } from 'preact/hooks';
import type { TokenStore } from '../model/ports.ts';
import type { Theme } from './parts/app.ts';

const themes: readonly Theme[] = ['auto', 'light', 'dark'];

/** Light or dark: what the system has, unless the user chose for this tab. */
export function useTheme(store: TokenStore): readonly [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(
    () => themes.find((one) => one === store.read()) ?? 'auto',
  );
  useEffect(() => {
    store.write(theme === 'auto' ? undefined : theme);
    document.documentElement.dataset['theme'] = theme;
  }, [store, theme]);
  return [theme, setTheme];
}

/** The theme after this one, where one switch goes through all. */
export function nextTheme(theme: Theme): Theme {
  return themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'auto';
}
