// A static dictionary collects a session for each request. Each line on the input is a step.
using System;
using System.Collections.Generic;

namespace Shop
{
    class Line
    {
        public string Name;
        public byte[] Data = new byte[100];
        public Line(string name) { Name = name; }
    }

    class Session
    {
        public List<Line> Lines = new List<Line>();
        public Session(int id) { for (int i = 0; i < 3; i++) Lines.Add(new Line("line " + id)); }
    }

    static class Registry
    {
        public static readonly Dictionary<int, Session> ById = new Dictionary<int, Session>();
    }

    static class StaticMap
    {
        static int next;

        static void Step(int count)
        {
            for (int i = 0; i < count; i++) { next++; Registry.ById[next] = new Session(next); }
        }

        static void Main(string[] words)
        {
            int count = words.Length > 0 ? int.Parse(words[0]) : 2000;
            Step(count);
            Console.WriteLine("READY");
            while (Console.ReadLine() != null) { Step(count); Console.WriteLine("DONE"); }
        }
    }
}
