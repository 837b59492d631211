import type { Theme } from './parts/app.ts';
import { useApp } from './parts/app.ts';
import { Button, Link } from './parts/basics.tsx';
import { nextTheme } from './theme.ts';

const themeLabels: Readonly<Record<Theme, readonly [mark: string, label: string]>> = {
  auto: ['◐', 'Theme: as the system'],
  light: ['☀', 'Theme: light'],
  dark: ['☾', 'Theme: dark'],
};

/** The head of every page. */
export function TopBar(props: {
  readonly isNavigationOpen: boolean;
  readonly toggleNavigation: () => void;
  readonly open: (overlay: 'palette' | 'help') => void;
  readonly signOut: () => void;
}) {
  const { isNavigationOpen, toggleNavigation, open, signOut } = props;
  const { workspace, theme, setTheme } = useApp();
  const { user, groups } = workspace.subject;
  const [mark, label] = themeLabels[theme];
  return (
    <header class="top">
      <Button
        act={toggleNavigation}
        class="plain menu"
        aria-expanded={isNavigationOpen}
        aria-controls="navigation"
        aria-label="Kinds"
      >
        ☰
      </Button>
      <Link to={{ page: 'home' }} class="home">
        <span class="logo" aria-hidden="true" />
        Wheelhouse
      </Link>
      <Button act={() => open('palette')} class="search" aria-keyshortcuts="Control+K">
        <span>Search or jump to…</span>
        <kbd>Ctrl K</kbd>
      </Button>
      <Button act={() => setTheme(nextTheme(theme))} class="plain" aria-label={label} title={label}>
        {mark}
      </Button>
      <Button act={() => open('help')} class="plain" aria-label="Help" title="Keys and help">
        ?
      </Button>
      <span class="user" title={groups.join(', ')}>
        {user || 'somebody'}
      </span>
      <Button act={signOut}>Sign out</Button>
    </header>
  );
}
