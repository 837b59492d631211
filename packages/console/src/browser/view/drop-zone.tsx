import { useEffect, useState } from 'preact/hooks';
import { type ManifestFile, useApp } from './parts/app.ts';

/** Takes manifest files that are dropped anywhere on the window, and shows what they would do. */
export function DropZone() {
  const app = useApp();
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const carriesFiles = (event: DragEvent): boolean =>
      event.dataTransfer?.types.includes('Files') === true;
    const over = (event: DragEvent): void => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent): void => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      setOver(false);
      void readFiles([...(event.dataTransfer?.files ?? [])]).then((files) => {
        app.dropped.current = files;
        if (app.workspace.route.page === 'apply') dispatchEvent(new Event(droppedEvent));
        else app.workspace.go({ page: 'apply' });
      });
    };
    addEventListener('dragover', over);
    addEventListener('dragleave', leave);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('dragleave', leave);
      removeEventListener('drop', drop);
    };
  }, [app]);
  return isOver ? <div class="drop-zone">Drop manifests to see what they would change</div> : null;
}

/** Said to the page that is open already when files are dropped on it. */
export const droppedEvent = 'wheelhouse-dropped';

/** A file larger than this is no manifest; the server takes no larger body. */
const bytesMax = 8 * 1024 * 1024;

/** The texts of files; of one that cannot be read, a comment that says so. */
export function readFiles(files: readonly File[]): Promise<ManifestFile[]> {
  return Promise.all(
    files.map(async (file) => {
      const { name } = file;
      if (file.size > bytesMax) return { name, text: '# the file is larger than 8 MiB\n' };
      return { name, text: await file.text().catch(() => '# the file cannot be read\n') };
    }),
  );
}
