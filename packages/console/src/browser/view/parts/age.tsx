import { humanDuration } from '@wheelhouse/machinery/browser';
import { useNow } from './app.ts';

/** How long ago something was; nothing when nobody says when. */
export function Age(props: { readonly time: string }) {
  const nowMs = useNow(10_000);
  const atMs = Date.parse(props.time);
  if (Number.isNaN(atMs)) return null;
  return (
    <time dateTime={props.time} title={props.time}>
      {humanDuration(Math.max(0, nowMs - atMs))} ago
    </time>
  );
}
