/**
 * Names of links by which images were started, as redis-server is a link to redis-check-rdb. Users
 * know a program by that name, while its code lies in the file. The name is shown before the file's
 * name. Copied, saved and filtered texts have the file's name alone, as on the command line.
 */
import type { OpenFile } from './api/types';
import { fileName } from './format';

/** Names by path, and by the last part of the path. */
let links = new Map<string, string>();

/** Sets the links of all open files, which may be compared. */
export function giveLinks(files: OpenFile[]): void {
  const names = new Map<string, Set<string>>();
  for (const { executable, name, command_line: words } of files.flatMap((file) => file.trace?.processes ?? [])) {
    // A name that begins the file's name is redundant; one that does not begin the command line's
    // first word was chosen later.
    if (!executable || name === '' || fileName(executable).startsWith(name)) continue;
    if (words[0] !== undefined && !fileName(words[0]).startsWith(name)) continue;
    for (const key of [executable, fileName(executable)]) names.set(key, (names.get(key) ?? new Set()).add(name));
  }
  links = new Map([...names].map(([image, all]) => [image, [...all].join(', ')]));
}

/**
 * Returns the link's name, as in `redis-server`; empty if the image was started by its own name
 * only.
 */
export function linksTo(image: string | null): string {
  return (image !== null && links.get(image)) || '';
}

/** Returns `redis-server (redis-check-rdb)`, by the last part of its path: the name that users know. */
export function linkedName(image: string): string {
  const names = linksTo(image);
  return names === '' ? image : `${names} (${image})`;
}
