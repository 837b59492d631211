import { type AuditEvent, encodeEvent, legacyLine } from './event.ts';
import type { AuditSink, TellLoss } from './sink.ts';

/** `legacy`: short lines for people. */
export type LogFormat = 'legacy' | 'json';

/** The destination of lines; `write` throws if a line cannot be written. */
export interface LineWriter {
  write(line: string): void;
  close(): Promise<void>;
}

/** Writes one line for each event (OPS-2). */
export function createLogSink(options: {
  readonly writer: LineWriter;
  readonly format: LogFormat;
  /** `audit.svc.io/v1` */
  readonly apiVersion: string;
  readonly tellLoss: TellLoss;
}): AuditSink {
  const { writer, format, tellLoss } = options;
  const head = `{"kind":"Event","apiVersion":${JSON.stringify(options.apiVersion)},`;
  const lineOf = (event: AuditEvent): string =>
    format === 'legacy' ? `${legacyLine(event)}\n` : `${head}${encodeEvent(event).slice(1)}\n`;
  return {
    process(events) {
      let isWhole = true;
      for (const event of events) {
        try {
          writer.write(lineOf(event));
        } catch (error) {
          isWhole = false;
          tellLoss({ plugin: 'log', error, events: [event] });
        }
      }
      return isWhole;
    },
    close: () => writer.close(),
  };
}
