const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

/**
 * A duration in at most two units, coarser the longer it is: `119s`, `9m59s`, `3h`, `7d23h`, `2y1d`.
 * Upstream's thresholds: below 2 minutes seconds only, below 10 two units, and so on.
 */
export function humanDuration(durationMs: number): string {
  const seconds = Math.trunc(durationMs / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 2 * minute) return `${seconds}s`;
  if (seconds < 10 * minute)
    return units(seconds, { unit: minute, name: 'm', rest: 1, restName: 's' });
  if (seconds < 3 * hour) return `${Math.floor(seconds / minute)}m`;
  if (seconds < 8 * hour)
    return units(seconds, { unit: hour, name: 'h', rest: minute, restName: 'm' });
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)}h`;
  if (seconds < 8 * day) return units(seconds, { unit: day, name: 'd', rest: hour, restName: 'h' });
  if (seconds < 2 * year) return `${Math.floor(seconds / day)}d`;
  if (seconds < 8 * year)
    return units(seconds, { unit: year, name: 'y', rest: day, restName: 'd' });
  return `${Math.floor(seconds / year)}y`;
}

function units(
  seconds: number,
  of: { unit: number; name: string; rest: number; restName: string },
): string {
  const whole = Math.floor(seconds / of.unit);
  const rest = Math.floor((seconds - whole * of.unit) / of.rest);
  return rest === 0 ? `${whole}${of.name}` : `${whole}${of.name}${rest}${of.restName}`;
}
