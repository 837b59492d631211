import type { TableState } from '../../model/table-store.ts';

const texts: Readonly<Record<TableState['phase'], string>> = {
  listing: 'Reading…',
  live: 'Live',
  waiting: 'Not connected',
  still: 'Not live',
  refused: 'Refused',
};

/** How a list stands to the server. */
export function TableStatus(props: { readonly state: TableState }) {
  const { phase, message, retryInMs } = props.state;
  const again = retryInMs === undefined ? '' : `, again in ${Math.ceil(retryInMs / 1000)} s`;
  return (
    <output class={`state ${phase}`} aria-live="polite">
      {`${texts[phase]}${message === undefined ? '' : `: ${message}`}${again}`}
    </output>
  );
}
