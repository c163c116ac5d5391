// A bounded cache turns over, and garbage is made: nothing leaks. Each line on the input is a step.
using System;
using System.Collections.Generic;

namespace Web
{
    class Page { public byte[] Text = new byte[200]; public Page Next; }

    static class Lru
    {
        const int Most = 3000;
        static readonly Dictionary<int, Page> Pages = new Dictionary<int, Page>();
        static readonly int[] Order = new int[Most];
        static int next;

        static void Step()
        {
            for (int i = 0; i < 10000; i++)
            {
                var garbage = new Page { Next = new Page() };
                garbage.Next.Next = garbage;
                next++;
                Pages.Remove(Order[next % Most]);
                Pages[next] = new Page();
                Order[next % Most] = next;
            }
        }

        static void Main()
        {
            Step();
            Console.WriteLine("READY");
            while (Console.ReadLine() != null) { Step(); Console.WriteLine("DONE"); }
        }
    }
}
