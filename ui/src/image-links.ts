/**
 * The names by which images were started that are links to them, as redis-server is one to redis-check-rdb: who started a program
 * knows it by that name, while its code lies in the file. Shown beside the file's name, wherever there is one; what is copied, saved
 * or filtered by has the file's name alone, as the command line has it.
 */
import type { OpenFile } from './api/types';
import { fileName } from './format';

/** By path, and by its last part. */
let links = new Map<string, string>();

/** What is told from now on: the links of all open files, which may be compared. */
export function giveLinks(files: OpenFile[]): void {
  const names = new Map<string, Set<string>>();
  for (const { executable, name, command_line: words } of files.flatMap((file) => file.trace?.processes ?? [])) {
    // A name that the file's begins with tells nothing new; one that the command line does not begin with was chosen later.
    if (!executable || name === '' || fileName(executable).startsWith(name)) continue;
    if (words[0] !== undefined && !fileName(words[0]).startsWith(name)) continue;
    for (const key of [executable, fileName(executable)]) names.set(key, (names.get(key) ?? new Set()).add(name));
  }
  links = new Map([...names].map(([image, all]) => [image, [...all].join(', ')]));
}

/** `redis-server`; empty if the image was started by its own name only. */
export function linksTo(image: string | null): string {
  return (image !== null && links.get(image)) || '';
}

/** `redis-check-rdb (redis-server)`, by the last part of its path. */
export function linkedName(image: string): string {
  const names = linksTo(image);
  return names === '' ? image : `${image} (${names})`;
}
